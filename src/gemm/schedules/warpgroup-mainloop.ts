/**
 * @file Mainloops: how a consumer warpgroup makes sums of the stages that fill up in front of it.
 *
 * Plainly, products run out of shared memory, one K step behind the one that is being started. Where A's elements are
 * changed, or not all of them count, they pass through registers. Where an instruction's own sums are too narrow, what it
 * has of one K step is added to a second set of accumulators in full precision (the two-level accumulation of CUTLASS's
 * and DeepGEMM's 8-bit kernels). Elements over an algebra have accumulators for each component, and a stage a plane for
 * each; the instruction's sign does what the multiplication table negates.
 */
import {
  type AnyFragment,
  type BarrierArray,
  type Bool,
  barriers,
  type Condition,
  constant,
  type I32,
  i32,
  namedBarrier,
  select,
  subgroup,
  thread,
  type Value,
  type Variable,
  variable,
  warpgroupCommit,
  warpgroupFence,
  warpgroupFragment,
  warpgroupMma,
  warpgroupWait,
  when,
} from "../../lang/index.ts";
import type { MatrixInstruction } from "../../target/facts.ts";
import type { Term } from "../algebras/product-plan.ts";
import { componentsOf, type GemmKind } from "../kind.ts";
import type { StagedOperand } from "./warpgroup-operands.ts";
import { type ElementChange, RegisterOperand } from "./warpgroup-registers.ts";
import { groupRows, kMajor, passageOf, threadsPerGroup } from "./warpgroup-shape.ts";

/** Position in the ring, kept by each role for itself. */
export class RingPosition {
  readonly stage: Variable<I32> = variable(i32, 0);
  readonly #phase: Variable<I32>;

  constructor(
    private readonly stages: number,
    firstPhase: 0 | 1,
  ) {
    this.#phase = variable(i32, firstPhase);
  }
  get phase(): Value<I32> {
    return this.#phase.value;
  }
  advance(): void {
    const next = this.stage.value.add(1);
    const wraps = next.eq(this.stages);
    this.stage.value = select(wraps, 0, next);
    this.#phase.value = select(wraps, this.#phase.value.xor(1), this.#phase.value);
  }
  /** Passes over stages that are another's. */
  skip(count: Value<I32>): void {
    const next = this.stage.value.add(count);
    const rounds = next.div(this.stages);
    this.stage.value = next.sub(rounds.mul(this.stages));
    this.#phase.value = this.#phase.value.xor(rounds.and(1));
  }
}

/**
 * Turns of two warpgroups: each begins a tile when the other has seen all stages of the tile before. Without that, a
 * warpgroup would wait for phases of the ring further ahead than the one that follows, which parities cannot tell apart;
 * and both would multiply, and then both run epilogues, at once (CUTLASS's ordered sequence barrier).
 */
export class TileTurns {
  readonly #barriers: BarrierArray = barriers(2);

  /** One thread does it, with the ring's barriers. */
  initialise(): void {
    for (const group of [0, 1]) this.#barriers.initialise(group, 1);
  }
  /** The turns of warpgroup `group`; number 0 has the first. */
  of(group: Value<I32>): Turn {
    const parity = variable(i32, group.xor(1));
    return {
      begin: () => {
        this.#barriers.wait(group, parity.value);
        parity.value = parity.value.xor(1);
      },
      end: () => when(isLeader(), () => this.#barriers.arrive(group.xor(1))),
    };
  }
}

/** One warpgroup's turns. */
export interface Turn {
  /** Waits for the next one. */
  begin(): void;
  /** Hands over to the other warpgroup. */
  end(): void;
}

/** Barriers of the ring, one of each for a stage. */
export interface RingBarriers {
  /** Completed when a stage's loads have come. */
  readonly full: BarrierArray;
  /** Completed when all consumers have said that they are done with a stage. */
  readonly empty: BarrierArray;
}

/**
 * Walks the K steps of a tile that count. `later()` is false for the first of them. Gives whether there was any; undefined
 * where there always is.
 */
export type StepWalk = (
  body: (step: Value<I32>, later: () => Value<Bool>) => void,
) => (() => Value<Bool>) | undefined;

/** What of the matrix A a tile's warpgroup multiplies, and what becomes of its elements. */
export interface MainloopTile {
  /** First of the warpgroup's rows. */
  readonly row: Value<I32>;
  readonly change: ElementChange;
  /** Whether the elements of the K step at `depth` are multiplied as they lie; no step's are unless given. */
  readonly unchanged: ((depth: Value<I32>) => Value<Bool>) | undefined;
}

/** What a mainloop works with. */
export interface MainloopContext {
  readonly kind: GemmKind;
  readonly instruction: MatrixInstruction;
  readonly a: StagedOperand;
  readonly b: StagedOperand;
  readonly barriers: RingBarriers;
  readonly position: RingPosition;
  /** Which 64 rows of the tile this consumer multiplies. */
  readonly parts: readonly Value<I32>[];
  /** The problem's K. */
  readonly k: Value<I32>;
}

/** Sums of one tile after the other. */
export interface Mainloop {
  /** For each 64 rows of the tile that the consumer multiplies, for each component of an element. */
  readonly accumulators: readonly (readonly AnyFragment[])[];
  sum(steps: StepWalk, tile: MainloopTile): void;
}

/** How often one consumer arrives at a stage's empty barrier: once, or once a warp. */
export function arrivalsOf(kind: GemmKind): number {
  return passageOf(kind, "a") === "registers" ? 4 : 1;
}

/** The mainloop of a kind. */
export function mainloopOf(context: MainloopContext): Mainloop {
  if (passageOf(context.kind, "a") === "registers") return new RegisterMainloop(context);
  if (context.kind.types.promotionInterval !== undefined) return new PromotingMainloop(context);
  return new SharedMainloop(context);
}

/** The product of numbers. */
const realTerms: readonly Term[] = [{ i: 0, j: 0, k: 0, sign: 1 }];

/** The products of one K step into accumulators; A from shared memory unless `slices` hold it. */
function multiply(
  { kind, instruction, a, b, parts }: MainloopContext,
  accumulators: readonly (readonly AnyFragment[])[],
  stage: Value<I32>,
  accumulate: Condition,
  slices?: readonly AnyFragment[],
): void {
  const { terms = realTerms } = kind.operator;
  for (let inner = 0; inner < kind.params.block.k; inner += instruction.k) {
    accumulators.forEach((sums, part) => {
      terms.forEach(({ i, j, k, sign }, at) => {
        const left = slices?.[inner / instruction.k] ?? a.slice(stage, inner, parts[part], i);
        const right = b.slice(stage, inner, undefined, j);
        const first = inner === 0 && terms.findIndex((term) => term.k === k) === at;
        warpgroupMma(instruction, sums[k], left, right, {
          accumulate: first ? accumulate : true,
          negateA: sign < 0,
        });
      });
    });
  }
}

/** Accumulators of 64 rows, one for each component; what no product adds to is zero for good. */
function createSums({ kind, instruction }: MainloopContext): readonly AnyFragment[] {
  const { terms = realTerms } = kind.operator;
  return Array.from({ length: componentsOf(kind) }, (_, component) => {
    const sums = warpgroupFragment(instruction, "accumulator");
    if (!terms.some(({ k }) => k === component)) sums.fill(0);
    return sums;
  });
}

/** Named barriers 1 and 2 are the results'; these say whose turn it is. */
const firstTurn = 3;

/**
 * Two warpgroups taking turns to start products, as FlashAttention-3 orders its warpgroups: without, both wait for the
 * matrix unit together and then leave it idle together while they load.
 */
class Turns {
  constructor(private readonly group: Value<I32>) {
    when(group.eq(1), () => namedBarrier.arrive(firstTurn, 2 * threadsPerGroup));
  }
  /** Waits for the warpgroup's turn. */
  take(): void {
    namedBarrier.sync(this.group.add(firstTurn), 2 * threadsPerGroup);
  }
  /** The other's turn. */
  pass(): void {
    namedBarrier.arrive(constant(i32, firstTurn + 1).sub(this.group), 2 * threadsPerGroup);
  }
}

/** The thread that speaks for its warpgroup, whose products end as one. */
function isLeader(): Value<Bool> {
  return thread.index.floorMod(threadsPerGroup).eq(0);
}

/** Says that a stage is free, where there is one. */
function release(
  { barriers }: MainloopContext,
  leader: Value<Bool>,
  stage: Value<I32>,
  there?: Value<Bool>,
): void {
  when(there === undefined ? leader : there.and(leader), () => barriers.empty.arrive(stage));
}

/** Both operands from shared memory; one K step stays in flight. */
class SharedMainloop implements Mainloop {
  readonly accumulators: readonly (readonly AnyFragment[])[];

  constructor(private readonly context: MainloopContext) {
    this.accumulators = context.parts.map(() => createSums(context));
  }

  sum(steps: StepWalk): void {
    const { context, accumulators } = this;
    const { position, barriers } = context;
    const leader = isLeader();
    const previous = variable(i32, 0);
    const any = steps((_, isLater) => {
      const later = isLater();
      const stage = position.stage.value;
      barriers.full.wait(stage, position.phase);
      warpgroupFence();
      multiply(context, accumulators, stage, later);
      warpgroupCommit();
      // The step before this one is done, and its stage is free.
      warpgroupWait(1);
      release(context, leader, previous.value, later);
      previous.value = stage;
      position.advance();
    });
    warpgroupWait(0);
    release(context, leader, previous.value, any?.());
    if (any === undefined) return;
    when(any().not(), () => {
      for (const accumulator of accumulators.flat()) accumulator.fill(0);
    });
  }
}

/**
 * A through registers, but for K steps that need no change. They are loaded when this warpgroup's products are done, while the other's run: the assembler gives
 * registers of a product that runs to whatever is computed beside it (see codegen/ptx/warpgroup.ts).
 */
class RegisterMainloop implements Mainloop {
  readonly accumulators: readonly (readonly AnyFragment[])[];
  readonly #registers: RegisterOperand;
  readonly #turns: Turns | undefined;

  constructor(private readonly context: MainloopContext) {
    const { kind, instruction, a, parts } = context;
    this.#turns = kind.params.block.m > groupRows ? new Turns(parts[0]) : undefined;
    this.accumulators = [[warpgroupFragment(instruction, "accumulator")]];
    this.#registers = new RegisterOperand({
      instruction,
      slices: kind.params.block.k / instruction.k,
      memory: a.memory,
      major: kMajor(kind, "a") ? "k" : "mn",
    });
  }

  sum(steps: StepWalk, { row, change, unchanged }: MainloopTile): void {
    const { context, accumulators } = this;
    const [[accumulator]] = accumulators;
    const { kind, a, position, barriers, parts, k } = context;
    const depthOfStep = kind.params.block.k;
    // Products end for a warpgroup as one; loads into registers end for each warp by itself.
    const leader = subgroup.lane.eq(0);
    const any = steps((step, isLater) => {
      const later = isLater();
      const stage = position.stage.value;
      barriers.full.wait(stage, position.phase);
      const depth = step.mul(depthOfStep);
      const edge = depth.add(depthOfStep).gt(k);
      const multiplied = (slices?: readonly AnyFragment[]): void => {
        // Either way all lanes have loaded before one of them says so.
        if (this.#turns === undefined) subgroup.barrier();
        else this.#turns.take();
        warpgroupFence();
        multiply(context, accumulators, stage, later, slices);
        warpgroupCommit();
        this.#turns?.pass();
        warpgroupWait(0);
      };
      const throughRegisters = (): void => {
        this.#registers.load(a.rowsOf(stage, parts[0]), change, { row, depth, edge });
        multiplied(this.#registers.slices);
      };
      if (unchanged === undefined) throughRegisters();
      else when(unchanged(depth), () => multiplied()).otherwise(throughRegisters);
      release(context, leader, stage);
      position.advance();
    });
    if (any !== undefined) when(any().not(), () => accumulator.fill(0));
  }
}

/**
 * Both operands from shared memory, and each K step's sums added to others in full precision. Nothing of a warpgroup stays
 * in flight while it adds; the other warpgroup's products do.
 */
class PromotingMainloop implements Mainloop {
  readonly accumulators: readonly (readonly AnyFragment[])[];
  readonly #partial: AnyFragment;

  constructor(private readonly context: MainloopContext) {
    this.accumulators = [[warpgroupFragment(context.instruction, "accumulator")]];
    this.#partial = warpgroupFragment(context.instruction, "accumulator");
  }

  sum(steps: StepWalk): void {
    const { context } = this;
    const [[accumulator]] = this.accumulators;
    const { position, barriers } = context;
    const leader = isLeader();
    const partial = this.#partial;
    accumulator.fill(0);
    steps(() => {
      const stage = position.stage.value;
      barriers.full.wait(stage, position.phase);
      warpgroupFence();
      multiply(context, [[partial]], stage, false);
      warpgroupCommit();
      warpgroupWait(0);
      release(context, leader, stage);
      accumulator.map((sum, i) => sum.add(partial.get(i)));
      position.advance();
    });
  }
}
