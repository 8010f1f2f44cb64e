/**
 * @file Several products as one plan: what the matrices of a batch, or the groups of a convolution, are.
 */
import { DisposedError } from "../errors.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { GemmPlan } from "./plan.ts";

/** Products that are enqueued together and leave one result. */
export interface JoinedPlan {
  /** The result. */
  readonly d: DeviceArray;
  /** The products, of one kind each, in order; none where the result has no elements. */
  readonly products: readonly GemmPlan[];
  /** Enqueues all of them. */
  run(): void;
  /** Says in words what is multiplied, and what {@link GemmPlan.explain} says of the first product. */
  explain(): string;
  /** Gives back what the plan holds; D stays. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Makes products one after another; those that were made are given back when one fails. */
export async function joinPlans(
  d: DeviceArray,
  headline: string,
  products: Iterable<() => Promise<GemmPlan>>,
): Promise<JoinedPlan> {
  const plans: GemmPlan[] = [];
  const release = (): void => {
    for (const plan of plans) plan.dispose();
  };
  try {
    for (const product of products) plans.push(await product());
  } catch (error) {
    release();
    throw error;
  }
  let disposed = false;
  const dispose = (): void => {
    if (disposed) return;
    disposed = true;
    release();
  };
  return {
    d,
    products: plans,
    run() {
      if (disposed) throw new DisposedError("this plan was disposed");
      for (const plan of plans) plan.run();
    },
    explain() {
      const [first] = plans;
      const several = plans.length > 1 ? `, ${plans.length} products like this one` : "";
      return first === undefined ? `${headline}, nothing to do` : `${headline}${several}\n${first.explain()}`;
    },
    dispose,
    [Symbol.dispose]: dispose,
  };
}
