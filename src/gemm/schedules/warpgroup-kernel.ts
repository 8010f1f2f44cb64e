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
  byteSize,
  type Condition,
  constant,
  grid,
  type I32,
  i32,
  index,
  inout,
  type Kernel,
  kernel,
  loop,
  loopWhile,
  output,
  roles,
  type SharedMatrixOperand,
  type SharedMemory,
  type StorageType,
  select,
  shared,
  subgroup,
  type TensorMap,
  type TensorMapDescriptor,
  tensorMap,
  tf32,
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
import { stepOperands, stepParameters } from "../epilogues/step.ts";
import { allExtraParameters, allExtraValues, type ExtrasOf, type ExtraValue } from "../extras.ts";
import { type GemmKind, scaleTypeOf } from "../kind.ts";
import type { StepSequence } from "../predicate.ts";
import { closedTransforms, type Transforms } from "../transforms.ts";
import { countedSteps, everyStepCounts } from "./counted-steps.ts";
import { counting, maskOutside } from "./staged-copy.ts";
import { tilePlace } from "./tile-order.ts";
import { type ElementChange, RegisterOperand } from "./warpgroup-registers.ts";
import {
  boxOf,
  check,
  groupRows,
  inRegisters,
  kMajor,
  lineBytes,
  sized,
  stageCount,
  stageElements,
  threadsPerGroup,
} from "./warpgroup-shape.ts";
import { type StoreArguments, storeBox, storesBoxes, WarpgroupStore } from "./warpgroup-store.ts";

/** What the body receives. */
interface WarpgroupArguments extends StoreArguments {
  readonly a: TensorMap<StorageType>;
  readonly b: TensorMap<StorageType>;
  readonly k: Value<I32>;
}

/** The kernel of a kind. */
export function warpgroupKernel(kind: GemmKind): Kernel {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof i32;
  const consumers = kind.params.block.m / groupRows;
  return kernel("gemm_warpgroup", {
    params: {
      a: operandMap(kind, "a"),
      b: operandMap(kind, "b"),
      ...(kind.c === undefined ? {} : { c: inout(kind.c.type, 0) }),
      d: output(kind.d.type, 0),
      ...(storesBoxes(kind) ? { boxes: tensorMap(kind.d.type, storeBox(kind), lineBytes) } : {}),
      m: i32,
      n: i32,
      k: i32,
      ...(kind.c === undefined ? {} : { leadingC: index }),
      leadingD: index,
      alpha: scale,
      ...(kind.c === undefined ? {} : { beta: scale }),
      ...stepParameters(kind.steps),
      ...allExtraParameters(kind.extras),
    },
    block: (consumers + 1) * threadsPerGroup,
    blocksPerMultiprocessor: 1,
    body: (args, facts) => new WarpgroupBody(kind, args as unknown as WarpgroupArguments, facts).write(),
  });
}

/** The tensor map of an operand; f32 is rounded to tf32 on its way, because the instructions would cut its low bits off. */
function operandMap(kind: GemmKind, operand: "a" | "b"): TensorMapDescriptor<StorageType> {
  const rounding = kind.types[operand] === tf32 ? ({ rounding: "tf32" } as const) : {};
  return tensorMap(kind[operand].type, boxOf(kind, operand), lineBytes, rounding);
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

class WarpgroupBody {
  readonly #stages: number;
  readonly #a: SharedMemory<StorageType>;
  readonly #b: SharedMemory<StorageType>;
  readonly #full: BarrierArray;
  readonly #empty: BarrierArray;
  readonly #steps: Value<I32>;
  readonly #tiles: Value<I32>;
  readonly #store: WarpgroupStore;
  readonly #counted: StepSequence;
  readonly #change: ElementChange | undefined;

  constructor(
    private readonly kind: GemmKind,
    private readonly args: WarpgroupArguments,
    private readonly facts: TargetFacts,
  ) {
    check(kind, facts);
    const { block: extents } = kind.params;
    const elements = stageElements(kind);
    this.#stages = stageCount(kind, facts);
    // 128-byte swizzle patterns repeat every 1024 bytes, and descriptors count from there.
    this.#a = shared(kind.a.type, this.#stages * elements.a, 1024);
    this.#b = shared(kind.b.type, this.#stages * elements.b, 1024);
    const steps = stepOperands(kind.steps, args as unknown as Readonly<Record<string, unknown>>);
    const extras = allExtraValues(kind.extras, args as unknown as Readonly<Record<string, unknown>>);
    const transforms = closedTransforms(kind.transforms, extras, args);
    this.#store = new WarpgroupStore(kind, args, steps, transforms, extents.m / groupRows);
    this.#full = barriers(this.#stages);
    this.#empty = barriers(this.#stages);
    this.#steps = args.k.ceilDiv(extents.k);
    this.#tiles = args.m.ceilDiv(extents.m).mul(args.n.ceilDiv(extents.n));
    this.#counted = countedSteps(kind, extras);
    this.#change = inRegisters(kind) ? elementChange(kind, transforms, extras, args) : undefined;
  }

  write(): void {
    const consumers = this.kind.params.block.m / groupRows;
    when(thread.index.eq(0), () => {
      for (let stage = 0; stage < this.#stages; stage++) {
        this.#full.initialise(stage, 1);
        this.#empty.initialise(stage, consumers * (this.#change === undefined ? 1 : 4));
      }
      barrierInitFence();
    });
    block.barrier();
    roles([
      { name: "producer", warpgroups: 1, registers: 40, body: () => this.#produce() },
      { name: "consumers", warpgroups: consumers, registers: 232, body: () => this.#consume() },
    ]);
  }

  #eachTile(body: (row: Value<I32>, column: Value<I32>) => void): void {
    loop({ from: block.id.x, to: this.#tiles, step: grid.size.x }, (tile) => {
      const { row, column } = tilePlace(this.kind.params, this.args.m, this.args.n, tile);
      body(row, column);
    });
  }

  /**
   * The K steps of a tile that count, the same ones in every role; `later()` is false for the first of them. Gives whether
   * there was any; undefined where there always is.
   */
  #eachStep(
    row: Value<I32>,
    column: Value<I32>,
    body: (step: Value<I32>, later: () => Value<Bool>) => void,
  ): (() => Value<Bool>) | undefined {
    const steps = this.#steps;
    if (everyStepCounts(this.kind)) {
      loop(steps, (step) => body(step, () => step.ne(0)));
      return undefined;
    }
    const { m, n, k } = this.kind.params.block;
    const tile = { row, column, rows: m, columns: n, depth: k, steps };
    const step = variable(i32, this.#counted.next(tile, constant(i32, 0)));
    const done = variable(i32, 0);
    loopWhile(
      () => step.value.lt(steps),
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
    when(thread.index.eq(0), () => {
      this.args.a.prefetch();
      this.args.b.prefetch();
      // A fresh barrier's phase of parity 1 counts as completed: the first round through the ring waits for nobody.
      const position = new RingPosition(this.#stages, 1);
      const { a, b } = stageElements(this.kind);
      const bytes = a * byteSize(this.kind.a.type) + b * byteSize(this.kind.b.type);
      this.#eachTile((row, column) => {
        this.#eachStep(row, column, (step) => {
          const stage = position.stage.value;
          this.#empty.wait(stage, position.phase);
          this.#full.arriveExpect(stage, bytes);
          const depth = step.mul(this.kind.params.block.k);
          this.#load("a", stage, depth, row);
          this.#load("b", stage, depth, column);
          position.advance();
        });
      });
    });
  }

  /** Loads one operand's tile of a stage: lines along K, or groups of 64 lines along M or N. */
  #load(operand: "a" | "b", stage: Value<I32>, depth: Value<I32>, across: Value<I32>): void {
    const { m, n, k } = this.kind.params.block;
    const map = this.args[operand];
    const memory = operand === "a" ? this.#a : this.#b;
    const origin = stage.mul(stageElements(this.kind)[operand]);
    const barrier = { barriers: this.#full, index: stage };
    if (kMajor(this.kind, operand)) {
      map.load(memory, origin, [depth, across], barrier);
      return;
    }
    const line = lineBytes / byteSize(this.kind[operand].type);
    for (let group = 0; group < (operand === "a" ? m : n) / line; group++) {
      map.load(memory, origin.add(group * line * k), [across.add(group * line), depth], barrier);
    }
  }

  #consume(): void {
    const instruction = sized(this.kind, this.facts);
    const accumulator = warpgroupFragment(instruction, "accumulator");
    const position = new RingPosition(this.#stages, 0);
    // The consumers are the block's second and later warpgroups.
    const group = subgroup.index.floorDiv(4).sub(1);
    const registers = this.#registerOperand(instruction);
    // Products end for a warpgroup as one; loads into registers end for each warp by itself.
    const leader =
      registers === undefined ? thread.index.floorMod(threadsPerGroup).eq(0) : subgroup.lane.eq(0);
    this.#eachTile((row, column) => {
      const previous = variable(i32, 0);
      const release = (any: Value<Bool> | undefined): void => {
        when(any === undefined ? leader : any.and(leader), () => this.#empty.arrive(previous.value));
      };
      const any = this.#eachStep(row, column, (step, isLater) => {
        const later = isLater();
        const stage = position.stage.value;
        this.#full.wait(stage, position.phase);
        if (registers !== undefined) {
          this.#loadRegisters(registers, stage, group, row, step);
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
      this.#store.leave(accumulator, row, column, group);
    });
    this.#store.finish();
  }

  /** A in registers, where something happens to its elements. */
  #registerOperand(instruction: MatrixInstruction): RegisterOperand | undefined {
    if (this.#change === undefined) return undefined;
    return new RegisterOperand({
      instruction,
      slices: this.kind.params.block.k / instruction.k,
      memory: this.#a,
      major: kMajor(this.kind, "a") ? "k" : "mn",
      change: this.#change,
    });
  }

  #loadRegisters(
    registers: RegisterOperand,
    stage: Value<I32>,
    group: Value<I32>,
    row: Value<I32>,
    step: Value<I32>,
  ): void {
    const { k } = this.kind.params.block;
    const depth = step.mul(k);
    const position = stage.mul(stageElements(this.kind).a).add(group.mul(groupRows * k));
    registers.load(position, row.add(group.mul(groupRows)), depth, depth.add(k).gt(this.args.k));
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
      const a = registers?.slices[inner / instruction.k] ?? this.#operand("a", stage, inner, group);
      const b = this.#operand("b", stage, inner, undefined);
      warpgroupMma(instruction, accumulator, a, b, { accumulate: inner === 0 ? later : true });
    }
  }

  /** Where a K slice of an operand begins, and how it lies. */
  #operand(
    operand: "a" | "b",
    stage: Value<I32>,
    inner: number,
    group: Value<I32> | undefined,
  ): SharedMatrixOperand {
    const { k } = this.kind.params.block;
    const memory = operand === "a" ? this.#a : this.#b;
    const origin = stage.mul(stageElements(this.kind)[operand]);
    const ofGroup = group === undefined ? origin : origin.add(group.mul(groupRows * k));
    const line = lineBytes / byteSize(this.kind[operand].type);
    if (kMajor(this.kind, operand)) {
      return {
        memory,
        position: ofGroup.add(inner),
        swizzle: lineBytes,
        major: "k",
        strideBytes: 8 * lineBytes,
      };
    }
    // Groups of 64 lines along M or N follow each other; within a group, eight K lines make one pattern.
    return {
      memory,
      position: ofGroup.add(inner * line),
      swizzle: lineBytes,
      major: "mn",
      strideBytes: 8 * lineBytes,
      leadingBytes: k * lineBytes,
    };
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
