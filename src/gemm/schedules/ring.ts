/**
 * @file The ring: stages of shared memory that copy engines fill ahead of the arithmetic, one barrier a K step.
 *
 * ```
 * issue the first stages - 1 steps that count
 * for each step that counts:
 *   wait for its copies; barrier     now all threads see it, and nobody reads the stage of the step before
 *   issue the step stages - 1 ahead  into that stage
 *   multiply
 * ```
 *
 * *Overlapped*, each slice of K is loaded into registers while the one before is multiplied, across the barrier too, and a
 * step's copies are spread over its slices. Steps whose copies need no care at the matrices' edges along K have a loop
 * without branches; a second one takes the rest.
 */
import {
  block,
  type Condition,
  copyAsyncCommit,
  copyAsyncWait,
  type I32,
  i32,
  loop,
  loopWhile,
  select,
  type Value,
  type Variable,
  variable,
  when,
} from "../../lang/index.ts";
import type { SharedTile } from "../operators/operator.ts";
import type { CopyEngine, CopyStep } from "./copy-engine.ts";
import type { WarpProduct } from "./warp-product.ts";

/** One operand's way into the ring. */
export interface RingOperand {
  readonly engine: CopyEngine;
  /** The operand's tile in a stage. */
  stage(number: Value<I32> | number): SharedTile;
  /** What of the matrix a K step takes. */
  place(step: Value<I32>): Omit<CopyStep, "target">;
}

/** What a ring needs to know. */
export interface RingOptions {
  readonly stages: number;
  readonly a: RingOperand;
  readonly b: RingOperand;
  readonly product: WarpProduct;
  readonly overlapped: boolean;
  /** The first K step, where it is not step 0, and the end of those there are. */
  readonly first: Value<I32> | 0;
  readonly steps: Value<I32>;
  /** Steps below this number lie well inside along K: another line follows the last. */
  readonly innerSteps: Value<I32>;
  /** The first step from a number on that counts; anything from `steps` on when none does. */
  next(step: Value<I32>): Value<I32>;
}

/** Multiplies all K steps that count. Afterwards the stages are free. */
export function runRing(options: RingOptions): void {
  new Ring(options).run();
}

class Ring {
  readonly #asynchronous: boolean;
  /** The step that is multiplied next, its stage, and the step that is copied next. */
  readonly #step: Variable<I32>;
  readonly #stage: Variable<I32>;
  readonly #ahead: Variable<I32>;

  constructor(private readonly ring: RingOptions) {
    this.#asynchronous = ring.a.engine.asynchronous || ring.b.engine.asynchronous;
    this.#step = variable(i32, this.#next(ring.first === 0 ? ring.steps.mul(0) : ring.first));
    this.#stage = variable(i32, 0);
    this.#ahead = variable(i32, this.#step.value);
  }

  run(): void {
    this.#fill();
    if (this.ring.overlapped) this.#runOverlapped();
    else this.#runPlain();
  }

  /** Steps beyond the last are all the same, so that counting on cannot overflow. */
  #next(step: Value<I32>): Value<I32> {
    return this.ring.next(step).min(this.ring.steps);
  }

  #fill(): void {
    const turn = (stage: Value<I32> | number): void => {
      const step = this.#ahead.value;
      when(step.lt(this.ring.steps), () => {
        this.#issue(step, stage);
        this.#arrive(step, stage);
      });
      this.#commit();
      this.#ahead.value = this.#next(step.add(1));
    };
    if (this.ring.stages === 2) turn(0);
    else loop(this.ring.stages - 1, turn);
  }

  #runPlain(): void {
    const { steps, product } = this.ring;
    loopWhile(
      () => this.#step.value.lt(steps),
      () => {
        const [step, stage, ahead] = [this.#step.value, this.#stage.value, this.#ahead.value];
        const more: Condition = ahead.lt(steps);
        const free = this.#before(stage);
        this.#await();
        when(more, () => this.#issue(ahead, free));
        this.#commit();
        product.run(this.#operands(stage, step));
        when(more, () => this.#arrive(ahead, free));
        this.#advance();
      },
    );
    block.barrier();
  }

  #runOverlapped(): void {
    const { steps, innerSteps, product } = this.ring;
    when(this.#step.value.lt(steps), () => {
      this.#await();
      product.load(this.#operands(this.#stage.value, this.#step.value), 0);
      loopWhile(
        () => this.#ahead.value.lt(innerSteps),
        () => this.#turn((step, stage, part, parts) => this.#issueInner(step, stage, part, parts), true),
      );
      loopWhile(
        () => this.#step.value.lt(steps),
        () =>
          this.#turn((step, stage, part) => {
            if (part === 0) when(step.lt(steps), () => this.#issue(step, stage));
          }, false),
      );
    });
  }

  /** One K step; `inner`: the step ahead, and therefore the following one, exists. */
  #turn(
    issue: (step: Value<I32>, stage: Value<I32>, part: number, parts: number) => void,
    inner: boolean,
  ): void {
    const { product, steps } = this.ring;
    const [step, stage, ahead] = [this.#step.value, this.#stage.value, this.#ahead.value];
    const free = this.#before(stage);
    const last = product.slices - 1;
    for (let slice = 0; slice < last; slice++) {
      product.load(this.#operands(stage, step), slice + 1);
      issue(ahead, free, slice, last);
      product.multiply(slice);
    }
    when(inner || ahead.lt(steps), () => this.#arrive(ahead, free));
    this.#commit();
    this.#advance();
    this.#await();
    const following = this.#operands(this.#stage.value, this.#step.value);
    when(inner || following.step.lt(steps), () => product.load(following, 0));
    product.multiply(last);
  }

  /** To the following step, and the following one to copy. */
  #advance(): void {
    const { stages } = this.ring;
    // With two stages the step ahead is the following one.
    this.#step.value = stages === 2 ? this.#ahead.value : this.#next(this.#step.value.add(1));
    this.#ahead.value = this.#next(this.#ahead.value.add(1));
    const stage = this.#stage.value;
    this.#stage.value = stages === 2 ? stage.xor(1) : wrapped(stage.add(1), stages, 0);
  }

  /** The stage before, which is the one stages - 1 ahead. */
  #before(stage: Value<I32>): Value<I32> {
    const { stages } = this.ring;
    return stages === 2 ? stage.xor(1) : wrapped(stage.sub(1), -1, stages - 1);
  }

  #operands(stage: Value<I32>, step: Value<I32>): { a: SharedTile; b: SharedTile; step: Value<I32> } {
    return { a: this.ring.a.stage(stage), b: this.ring.b.stage(stage), step };
  }

  #each(
    step: Value<I32>,
    stage: Value<I32> | number,
    body: (engine: CopyEngine, at: CopyStep) => void,
  ): void {
    for (const operand of [this.ring.a, this.ring.b])
      body(operand.engine, { target: operand.stage(stage), ...operand.place(step) });
  }
  #issue(step: Value<I32>, stage: Value<I32> | number): void {
    this.#each(step, stage, (engine, at) => engine.issue(at));
  }
  #issueInner(step: Value<I32>, stage: Value<I32>, part: number, parts: number): void {
    this.#each(step, stage, (engine, at) => engine.issueInner(at, part, parts));
  }
  #arrive(step: Value<I32>, stage: Value<I32> | number): void {
    this.#each(step, stage, (engine, at) => engine.arrive(at));
  }

  /** One group of copies a step, empty ones too, so that counting groups counts steps. */
  #commit(): void {
    if (this.#asynchronous) copyAsyncCommit();
  }

  /** Waits for the copies of the next step, everybody's. */
  #await(): void {
    if (this.#asynchronous) copyAsyncWait(this.ring.stages - 2);
    block.barrier();
  }
}

/** `value`, or `then` where it has reached the `end`. */
function wrapped(value: Value<I32>, end: number, then: number): Value<I32> {
  return select(value.eq(end), then, value);
}
