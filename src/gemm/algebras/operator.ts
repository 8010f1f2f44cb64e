/**
 * @file The operator over an algebra: any operator, with a fragment for each component and the matrix operations that the
 * algebra's table asks for. Shared tiles hold the components in planes.
 */
import { ArgumentError, UnsupportedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { FragmentTerm, Operator, OperatorFactory, OperatorTypes } from "../operators/operator.ts";
import { planeOf } from "../operators/shared-tile.ts";
import type { Algebra } from "./algebra.ts";
import { type Combination, type Conjugated, planProducts, single, termsOf } from "./product-plan.ts";

/** One operand's fragments. */
interface Factors<F> {
  /** The components, as they lie in shared memory. */
  readonly components: readonly F[];
  /** What is multiplied: a component, or a sum of components that has a fragment of its own. */
  readonly factors: readonly F[];
}

const neither: Conjugated = { a: false, b: false };
const operators: WeakMap<Algebra, WeakMap<OperatorFactory, Map<string, OperatorFactory>>> = new WeakMap();

/**
 * `inner` for matrices over an algebra; the same algebra, operator and conjugations give the same object. A complex
 * product is four matrix operations, one over dual numbers three: what is zero in the table costs nothing.
 * @throws ArgumentError for an operator that is no ring or has components already
 */
export function algebraOperator(
  algebra: Algebra,
  inner: OperatorFactory,
  conjugated: Conjugated = neither,
): OperatorFactory {
  if (inner.ring === false)
    throw new ArgumentError(
      `the ${inner.name} operator neither multiplies nor adds; ${algebra.name} needs one that does`,
    );
  if (inner.components !== undefined)
    throw new ArgumentError(`the ${inner.name} operator is over an algebra already; give the one within`);
  const ofAlgebra = operators.get(algebra) ?? new WeakMap<OperatorFactory, Map<string, OperatorFactory>>();
  operators.set(algebra, ofAlgebra);
  const ofInner = ofAlgebra.get(inner) ?? new Map<string, OperatorFactory>();
  ofAlgebra.set(inner, ofInner);
  const key = `${conjugated.a} ${conjugated.b}`;
  const known = ofInner.get(key);
  if (known !== undefined) return known;
  const accumulators = algebra.algorithm?.left.length ?? algebra.dimension;
  const within = inner.narrowed?.(accumulators) ?? inner;
  const made: OperatorFactory = {
    name: `${algebra.name} ${inner.name}`,
    ring: true,
    components: algebra.dimension,
    ...(algebra.algorithm === undefined ? { terms: termsOf(algebra, conjugated) } : {}),
    create: (types, facts) => createOver(algebra, within, conjugated, types, facts),
  };
  ofInner.set(key, made);
  return made;
}

function createOver(
  algebra: Algebra,
  factory: OperatorFactory,
  conjugated: Conjugated,
  types: OperatorTypes,
  facts: TargetFacts,
): Operator<Factors<unknown>, Factors<unknown>, readonly unknown[]> {
  const inner = factory.create(types, facts);
  const plan = planProducts(algebra, conjugated, inner.combineFactors !== undefined);
  const sums = [...plan.left, ...plan.right].some((factor) => single(factor) === undefined);
  if (sums && inner.combineFactors === undefined) {
    throw new UnsupportedError(
      `${algebra.name} multiplies sums of components, which ${inner.name} cannot make in ${types.a.name}; an algebra without an algorithm has no sums`,
    );
  }
  if (
    plan.result.some((component) => single(component) === undefined) &&
    inner.combineAccumulators === undefined
  )
    throw new UnsupportedError(`${algebra.name} subtracts products, which ${inner.name} cannot`);
  const createFactors = (wanted: readonly Combination[], create: () => unknown): Factors<unknown> => {
    const components = Array.from({ length: algebra.dimension }, create);
    return { components, factors: wanted.map((factor) => components[single(factor) ?? -1] ?? create()) };
  };
  const terms = (combination: Combination, things: readonly unknown[]): readonly FragmentTerm<unknown>[] =>
    combination.flatMap((sign, i) => (sign === 0 ? [] : [{ fragment: things[i], sign }]));
  const combineInto = ({ components, factors }: Factors<unknown>, wanted: readonly Combination[]): void => {
    wanted.forEach((factor, f) => {
      if (single(factor) === undefined) inner.combineFactors?.(factors[f], terms(factor, components));
    });
  };
  const used = (wanted: readonly Combination[], component: number): boolean =>
    wanted.some((factor) => factor[component] !== 0);
  return {
    name: `${algebra.name} ${inner.name}`,
    shape: inner.shape,
    types,
    shared: inner.shared,
    components: algebra.dimension,
    held: { accumulators: plan.accumulators, left: plan.left.length, right: plan.right.length },
    opaque: inner.opaque,
    ...(inner.swizzles === undefined ? {} : { swizzles: inner.swizzles }),
    ...(inner.byLanes === undefined ? {} : { byLanes: inner.byLanes }),
    sharedMajor: (operand, global) => inner.sharedMajor(operand, global),
    sharedPadding: (operand, major) => inner.sharedPadding(operand, major),
    createA: () => createFactors(plan.left, () => inner.createA()),
    createB: () => createFactors(plan.right, () => inner.createB()),
    createAccumulator: () => Array.from({ length: plan.accumulators }, () => inner.createAccumulator()),
    loadA(target, source, tile, transform) {
      target.components.forEach((fragment, p) => {
        if (used(plan.left, p)) inner.loadA(fragment, planeOf(source, p), tile, transform);
      });
      combineInto(target, plan.left);
    },
    loadB(target, source, tile, transform) {
      target.components.forEach((fragment, p) => {
        if (used(plan.right, p)) inner.loadB(fragment, planeOf(source, p), tile, transform);
      });
      combineInto(target, plan.right);
    },
    multiply(accumulators, a, b) {
      for (const { left, right, accumulator } of plan.products)
        inner.multiply(accumulators[accumulator], a.factors[left], b.factors[right]);
    },
    storeD(accumulators, target, tile) {
      plan.result.forEach((component, p) => {
        const alone = single(component);
        const held = alone === undefined ? inner.createAccumulator() : accumulators[alone];
        if (alone === undefined) inner.combineAccumulators?.(held, terms(component, accumulators));
        inner.storeD(held, planeOf(target, p), tile);
      });
    },
  };
}
