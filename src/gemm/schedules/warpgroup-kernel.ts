/**
 * @file The warpgroup kernel: tensor maps bring tiles into a ring of shared stages, warpgroups multiply them out of
 * shared memory, blocks stay resident and take one output tile after another.
 *
 * ```
 * producer (one thread):  for each tile, each K step: wait empty[s]; announce bytes on full[s]; start both loads
 * consumers (warpgroups): for each tile, each K step: wait full[s]; start the products of step s;
 *                         wait for those of step s-1; arrive on empty[s-1];  then the epilogue, from registers
 * ```
 *
 * Where something happens to A's elements, or not all of them count, consumers load them from the shared stage into
 * registers, change them there, and multiply by the instruction's register form; see warpgroup-registers.ts.
 *
 * While consumers run an epilogue, the producer already fills the ring for the next tile. Tensor maps clip what lies
 * outside the matrices: loads see zeros, so remainders of M, N and K cost nothing here. The protocol follows the public
 * Hopper kernels surveyed by the PTX ISA's own example and CUTLASS's warp-specialised mainloop.
 */
import {
  type AnyFragment,
  type BarrierArray,
  type Bool,
  barrierInitFence,
  barriers,
  block,
  type Condition,
  constant,
  grid,
  type I32,
  i32,
  type Kernel,
  kernel,
  loop,
  loopWhile,
  roles,
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
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import { allExtraValues, type ExtrasOf, type ExtraValue } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import type { StepSequence } from "../predicate.ts";
import { closedTransforms, type Transforms } from "../transforms.ts";
import { countedSteps, everyStepCounts } from "./counted-steps.ts";
import { counting, maskOutside } from "./staged-copy.ts";
import { tileCount, tilePlace } from "./tile-order.ts";
import {
  resultArguments,
  tileArguments,
  type WarpgroupArguments,
  warpgroupParameters,
} from "./warpgroup-interface.ts";
import { StagedOperand } from "./warpgroup-operands.ts";
import { type ElementChange, RegisterOperand } from "./warpgroup-registers.ts";
import {
  check,
  groupRows,
  inRegisters,
  kMajor,
  sized,
  stageCount,
  threadsPerGroup,
} from "./warpgroup-shape.ts";
import { finishStores, type StoreResources, storeResources, WarpgroupStore } from "./warpgroup-store.ts";
import { dividesK, type Work, workOf } from "./work.ts";

/** The kernel of a kind. */
export function warpgroupKernel(kind: GemmKind): Kernel {
  const consumers = kind.params.block.m / groupRows;
  return kernel("gemm_warpgroup", {
    params: warpgroupParameters(kind),
    block: (consumers + 1) * threadsPerGroup,
    blocksPerMultiprocessor: 1,
    body: (args, facts) => new WarpgroupBody(kind, args as unknown as WarpgroupArguments, facts).write(),
  });
}

/** Position in the ring, kept by each role for itself. */
class RingPosition {
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
}

/** An output tile that a block computes. */
interface OutputTile extends Work {
  /** Its first element in its matrix. */
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}

class WarpgroupBody {
  readonly #stages: number;
  readonly #a: StagedOperand;
  readonly #b: StagedOperand;
  readonly #full: BarrierArray;
  readonly #empty: BarrierArray;
  readonly #steps: Value<I32>;
  readonly #tilesEach: Value<I32>;
  readonly #store: StoreResources;
  readonly #extras: ExtrasOf<ExtraValue>;
  readonly #counted: StepSequence;

  constructor(
    private readonly kind: GemmKind,
    private readonly args: WarpgroupArguments,
    private readonly facts: TargetFacts,
  ) {
    check(kind, facts);
    const { block: extents } = kind.params;
    this.#stages = stageCount(kind, facts);
    this.#a = new StagedOperand(kind, "a", this.#stages);
    this.#b = new StagedOperand(kind, "b", this.#stages);
    this.#extras = allExtraValues(kind.extras, args as unknown as Readonly<Record<string, unknown>>);
    this.#store = storeResources(kind, resultArguments(kind, args), extents.m / groupRows);
    this.#full = barriers(this.#stages);
    this.#empty = barriers(this.#stages);
    this.#steps = args.k.ceilDiv(extents.k);
    this.#tilesEach = tileCount(kind.params, args.m, args.n);
    this.#counted = countedSteps(kind, this.#extras);
  }

  write(): void {
    const consumers = this.kind.params.block.m / groupRows;
    when(thread.index.eq(0), () => {
      for (let stage = 0; stage < this.#stages; stage++) {
        this.#full.initialise(stage, 1);
        this.#empty.initialise(stage, consumers * (inRegisters(this.kind) ? 4 : 1));
      }
      barrierInitFence();
    });
    block.barrier();
    roles([
      { name: "producer", warpgroups: 1, registers: 40, body: () => this.#produce() },
      { name: "consumers", warpgroups: consumers, registers: 232, body: () => this.#consume() },
    ]);
  }

  #eachTile(body: (tile: OutputTile) => void): void {
    const { kind, args } = this;
    const each = this.#tilesEach;
    const several = kind.batch !== "single" || dividesK(kind);
    const all = several ? each.mul(args.matrices) : each;
    loop({ from: block.id.x, to: all, step: grid.size.x }, (number) => {
      const work = workOf(kind, args, number, () => each);
      body({ ...work, ...tilePlace(kind.params, args.m, args.n, work.tile) });
    });
  }

  /**
   * The K steps of a tile that count, the same ones in every role; `later()` is false for the first of them. Gives whether
   * there was any; undefined where there always is.
   */
  #eachStep(
    { row, column, range }: OutputTile,
    body: (step: Value<I32>, later: () => Value<Bool>) => void,
  ): (() => Value<Bool>) | undefined {
    const steps = this.#steps;
    const { first, end } = range(steps);
    if (everyStepCounts(this.kind)) {
      loop({ from: first, to: end }, (step) => body(step, () => step.ne(first)));
      return first === 0 ? undefined : () => first.lt(end);
    }
    const { m, n, k } = this.kind.params.block;
    const tile = { row, column, rows: m, columns: n, depth: k, steps };
    const step = variable(i32, this.#counted.next(tile, first === 0 ? constant(i32, 0) : first));
    const done = variable(i32, 0);
    loopWhile(
      () => step.value.lt(end),
      () => {
        const here = step.value;
        body(here, () => done.value.ne(0));
        done.value = 1;
        step.value = this.#counted.next(tile, here.add(1));
      },
    );
    return () => done.value.ne(0);
  }

  #produce(): void {
    const { args } = this;
    when(thread.index.eq(0), () => {
      args.a.prefetch();
      args.b.prefetch();
      // A fresh barrier's phase of parity 1 counts as completed: the first round through the ring waits for nobody.
      const position = new RingPosition(this.#stages, 1);
      const bytes = this.#a.bytes + this.#b.bytes;
      this.#eachTile((tile) => {
        const matrixA = tile.batch?.min(args.matricesA.sub(1));
        const matrixB = tile.batch?.min(args.matricesB.sub(1));
        this.#eachStep(tile, (step) => {
          const target = { stage: position.stage.value, full: this.#full };
          this.#empty.wait(target.stage, position.phase);
          this.#full.arriveExpect(target.stage, bytes);
          const depth = step.mul(this.kind.params.block.k);
          this.#a.load(args.a, target, { depth, across: tile.row }, matrixA);
          this.#b.load(args.b, target, { depth, across: tile.column }, matrixB);
          position.advance();
        });
      });
    });
  }

  #consume(): void {
    const instruction = sized(this.kind, this.facts);
    const accumulator = warpgroupFragment(instruction, "accumulator");
    const position = new RingPosition(this.#stages, 0);
    // The consumers are the block's second and later warpgroups.
    const group = subgroup.index.floorDiv(4).sub(1);
    const registers = inRegisters(this.kind) ? this.#registerOperand(instruction) : undefined;
    // Products end for a warpgroup as one; loads into registers end for each warp by itself.
    const leader =
      registers === undefined ? thread.index.floorMod(threadsPerGroup).eq(0) : subgroup.lane.eq(0);
    this.#eachTile((tile) => {
      const ofTile = tileArguments(this.args, tile);
      const transforms = closedTransforms(this.kind.transforms, this.#extras, this.args, tile.batch);
      const change = elementChange(this.kind, transforms, this.#extras, this.args);
      const previous = variable(i32, 0);
      const release = (any: Value<Bool> | undefined): void => {
        when(any === undefined ? leader : any.and(leader), () => this.#empty.arrive(previous.value));
      };
      const any = this.#eachStep(tile, (step, isLater) => {
        const later = isLater();
        const stage = position.stage.value;
        this.#full.wait(stage, position.phase);
        if (registers !== undefined) {
          this.#loadRegisters(registers, change, { stage, group, row: tile.row, step });
          // All lanes have loaded before one of them, a step later, says so.
          subgroup.barrier();
          // What is running reads its registers until it is done; then its stage is free, too.
          warpgroupWait(0);
          release(later);
          registers.take();
        }
        warpgroupFence();
        this.#multiply(instruction, accumulator, stage, group, registers, later);
        warpgroupCommit();
        if (registers === undefined) {
          // One step stays in flight; the one before it is done, and its stage is free.
          warpgroupWait(1);
          release(later);
        }
        previous.value = stage;
        position.advance();
      });
      warpgroupWait(0);
      release(any?.());
      if (any !== undefined) when(any().not(), () => accumulator.fill(0));
      const store = new WarpgroupStore(
        this.kind,
        resultArguments(this.kind, ofTile),
        this.#store,
        transforms,
        tile.target,
      );
      store.leave(accumulator, tile.row, tile.column, group);
    });
    finishStores(this.#store);
  }

  /** A in registers, where something happens to its elements. */
  #registerOperand(instruction: MatrixInstruction): RegisterOperand {
    return new RegisterOperand({
      instruction,
      slices: this.kind.params.block.k / instruction.k,
      memory: this.#a.memory,
      major: kMajor(this.kind, "a") ? "k" : "mn",
    });
  }

  #loadRegisters(
    registers: RegisterOperand,
    change: ElementChange,
    at: {
      readonly stage: Value<I32>;
      readonly group: Value<I32>;
      readonly row: Value<I32>;
      readonly step: Value<I32>;
    },
  ): void {
    const { k } = this.kind.params.block;
    const depth = at.step.mul(k);
    registers.load(this.#a.rowsOf(at.stage, at.group), change, {
      row: at.row.add(at.group.mul(groupRows)),
      depth,
      edge: depth.add(k).gt(this.args.k),
    });
  }

  #multiply(
    instruction: MatrixInstruction,
    accumulator: AnyFragment,
    stage: Value<I32>,
    group: Value<I32>,
    registers: RegisterOperand | undefined,
    later: Condition,
  ): void {
    const { k } = this.kind.params.block;
    for (let inner = 0; inner < k; inner += instruction.k) {
      const a = registers?.slices[inner / instruction.k] ?? this.#a.slice(stage, inner, group);
      const b = this.#b.slice(stage, inner, undefined);
      warpgroupMma(instruction, accumulator, a, b, { accumulate: inner === 0 ? later : true });
    }
  }
}

/** What happens to A's elements in registers: both transforms, then zero for what is no element of the matrix. */
function elementChange(
  { a, types }: GemmKind,
  transforms: Transforms,
  extras: ExtrasOf<ExtraValue>,
  { m, k }: WarpgroupArguments,
): ElementChange {
  const stages = [transforms.a?.globalToShared, transforms.a?.sharedToRegister];
  return (value, at, edge) => {
    const changed = stages.reduce((x, stage) => stage?.(x, at).to(types.a) ?? x, value);
    const own = extras.a ?? [];
    const counts = edge ? counting(at, m, k, a.layout, own) : a.layout.counts?.(at.row, at.column, own);
    return counts === undefined ? changed : maskOutside(changed, counts, 0);
  };
}
