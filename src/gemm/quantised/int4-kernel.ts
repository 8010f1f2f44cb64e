/**
 * @file The kernel of a product with 4-bit weights: Dᵀ = Wᵀ · Xᵀ. The weights stream by once, in lines of 512 bytes a warp;
 * they are the left operand of `mma.sync`, whose fragments are made of nibbles in registers (lop3 and a subtraction, see
 * `unpack4`), and the activations the right one, eight rows at a time. A group's sums are made in f32 and scaled when the
 * group ends. Warps of a block share K; at the end they add up in a fixed order, and threads run the epilogue.
 *
 * What multiplies is what Marlin does (Frantar et al., "MARLIN: Mixed-Precision Auto-Regressive Parallel Inference on Large
 * Language Models", 2024). Every warp has a ring of its own in shared memory, and every lane copies there what it reads
 * itself, so that nobody waits for anybody until the end.
 */
import {
  type AnyFragment,
  type AnyValue,
  block,
  copyAsync,
  copyAsyncCommit,
  copyAsyncWait,
  f32,
  findInstruction,
  fusedMultiplyAdd,
  type GlobalArray,
  type I32,
  type Index,
  i32,
  index,
  input,
  type Kernel,
  kernel,
  loop,
  mma,
  mmaFragment,
  output,
  type SharedArena,
  type SharedMemory,
  type StorageType,
  select,
  sharedArena,
  subgroup,
  thread,
  type U32,
  u32,
  unpack,
  unpack4,
  type Value,
  type Variable,
  variable,
  variables,
  vector,
  when,
} from "../../lang/index.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import { combine } from "../epilogues/combination.ts";
import { type StepKind, stepOperands, stepParameters } from "../epilogues/step.ts";
import { blockColumns, blockDepth, type Int4Group, wordsPerLane } from "./int4-weights.ts";

/** Everything that is compiled in. */
export interface Int4Kind {
  readonly x: StorageType;
  readonly d: StorageType;
  readonly group: Int4Group;
  /** Whether rows of X begin at multiples of 16 bytes. */
  readonly aligned: boolean;
  /** Blocks of 16 columns, and eights of rows, that a block computes. */
  readonly columns: number;
  readonly rows: number;
  readonly steps: readonly StepKind[];
}

/** Rows that one instruction multiplies. */
export const rowsAtOnce = 8;
const lanes = 32;
/** Elements of K of one instruction, and in how many of them a lane's neighbours in X lie. */
const instructionDepth = 16;
const neighbours = 8;

/** Warps that a block may have, and stages of each of their rings. */
const warpChoices = [16, 8, 4] as const;
const fewestStages = 3;
const mostStages = 6;
/** Words of a piece: what the lanes of a warp copy at once, 16 bytes each. */
const pieceWords = lanes * wordsPerLane;

/** How a block is made up for a target. */
export interface Int4Shape {
  /** They share K. */
  readonly warps: number;
  /** Blocks of K in each warp's ring. */
  readonly stages: number;
}

/** Pieces of a stage: of the weights, and of X where its rows are aligned. */
function piecesOf({ columns, rows, aligned }: Pick<Int4Kind, "columns" | "rows" | "aligned">): number {
  return columns + (aligned ? rows * (blockDepth / (4 * neighbours)) : 0);
}

/** Bytes in which a block's warps meet at the end; the rings' memory serves. */
function meetingBytes({ columns, rows }: Pick<Int4Kind, "columns" | "rows">, warps: number): number {
  return 4 * warps * rows * rowsAtOnce * lineOf(columns);
}

/** Elements of a line there: four more than columns, so that lanes' elements of neighbouring rows lie in different banks. */
function lineOf(columns: number): number {
  return columns * blockColumns + 4;
}

/** As many warps as have rings of three stages at least. */
export function int4Shape(kind: Int4Kind, facts: TargetFacts): Int4Shape {
  const most = facts.limits.sharedBytes - 1024;
  const choices = warpChoices.map((warps) => {
    const stages = Math.floor(most / (4 * pieceWords * piecesOf(kind) * warps));
    return { warps, stages: Math.min(mostStages, stages), fits: meetingBytes(kind, warps) <= most };
  });
  // Many sums, or two scales a block of K beside them, leave a lane no registers for a fourth warp of each scheduler.
  const sums = kind.rows * kind.columns;
  const wanted = choices.filter(
    ({ warps }) => warps <= (sums > 8 || (sums === 8 && kind.group < blockDepth) ? 8 : 16),
  );
  const found = wanted.find(({ stages, fits }) => fits && stages >= fewestStages) ?? wanted.at(-1)!;
  return { warps: found.warps, stages: Math.max(2, found.stages) };
}

/** The instruction for a type; undefined where the target has none. */
export function int4Instruction(x: StorageType, facts: TargetFacts): MatrixInstruction | undefined {
  if (facts.subgroup.width !== lanes) return undefined;
  const shape = { m: 16, n: rowsAtOnce, k: instructionDepth };
  return findInstruction(facts.mma, { ...shape, a: x.name, b: x.name, accumulator: "f32" });
}

interface Int4Arguments {
  readonly x: GlobalArray<StorageType>;
  readonly words: GlobalArray<U32>;
  readonly scales: GlobalArray<U32>;
  readonly d: GlobalArray<StorageType>;
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly k: Value<I32>;
  readonly leadingX: Value<Index>;
  readonly leadingD: Value<Index>;
  readonly alpha: AnyValue;
}

/** The kernel of a kind. */
export function int4Kernel(kind: Int4Kind): Kernel {
  return kernel("gemm_int4", {
    params: {
      x: input(kind.x, 0),
      words: input(u32, 0),
      scales: input(u32, 0),
      d: output(kind.d, 0),
      m: i32,
      n: i32,
      k: i32,
      leadingX: index,
      leadingD: index,
      alpha: f32,
      ...stepParameters(kind.steps),
    },
    block: (facts) => int4Shape(kind, facts).warps * lanes,
    body: (args, facts) => new Int4Body(kind, args as unknown as Int4Arguments, facts).write(),
  });
}

/** Where a warp is in its part of K. */
interface Progress {
  /** Stages of its ring that come next: to be multiplied, to be filled. */
  readonly reading: Variable<I32>;
  readonly filling: Variable<I32>;
  /** Block of K that is copied next. */
  readonly chunk: Variable<I32>;
}

class Int4Body {
  readonly #instruction: MatrixInstruction;
  readonly #shape: Int4Shape;
  /** Blocks of K and groups of a unit, which a warp takes at once. */
  readonly #chunks: number;
  readonly #groups: number;
  readonly #firstBlock: Value<I32>;
  readonly #firstRow: Value<I32>;
  readonly #lane: { readonly row: Value<I32>; readonly quad: Value<I32> };
  readonly #arena: SharedArena;
  readonly #ring: SharedMemory<U32>;
  readonly #ringOfX: SharedMemory<StorageType>;
  readonly #sums: readonly (readonly AnyFragment[])[];
  readonly #partial: readonly (readonly AnyFragment[])[];
  readonly #left: AnyFragment;
  /** Where the lane's words of a block of columns and its elements of a row of X begin; made once, before K is walked. */
  readonly #lines: { readonly words: readonly Value<Index>[]; readonly x: readonly Value<Index>[] };
  /** By eight rows and instruction of a block of K. */
  readonly #right: readonly (readonly AnyFragment[])[];

  constructor(
    private readonly kind: Int4Kind,
    private readonly args: Int4Arguments,
    facts: TargetFacts,
  ) {
    const instruction = int4Instruction(kind.x, facts);
    if (instruction === undefined) throw new RangeError(`no instruction for ${kind.x.name}`);
    this.#instruction = instruction;
    this.#shape = int4Shape(kind, facts);
    this.#chunks = Math.max(1, kind.group / blockDepth);
    this.#groups = (this.#chunks * blockDepth) / kind.group;
    this.#firstBlock = block.id.x.mul(kind.columns);
    this.#firstRow = block.id.y.mul(kind.rows * rowsAtOnce);
    const { lane } = subgroup;
    this.#lane = { row: lane.floorDiv(4), quad: lane.floorMod(4) };
    const { warps, stages } = this.#shape;
    const words = warps * stages * piecesOf(kind) * pieceWords;
    this.#arena = sharedArena(Math.max(4 * words, meetingBytes(kind, warps)), 128);
    this.#ring = this.#arena.view(u32, words, 0);
    this.#ringOfX = this.#arena.view(kind.x, 2 * words, 0) as SharedMemory<StorageType>;
    const each = <T>(count: number, make: () => T): readonly T[] => Array.from({ length: count }, make);
    const accumulators = (): readonly (readonly AnyFragment[])[] =>
      each(kind.columns, () => each(kind.rows, () => mmaFragment(instruction, "accumulator")));
    const chunks = args.k.div(blockDepth).to(index);
    this.#lines = {
      words: Array.from({ length: kind.columns }, (_, column) => {
        const first = this.#firstBlock.add(column).to(index).mul(chunks);
        return first.mul(pieceWords).add(this.#word.to(index));
      }),
      x: Array.from({ length: kind.rows }, (_, eight) => {
        // Rows beyond X are its last once more; nobody stores what becomes of them.
        const row = this.#firstRow
          .add(this.#lane.row)
          .add(eight * rowsAtOnce)
          .min(args.m.sub(1));
        return row.to(index).mul(args.leadingX).add(this.#lane.quad.mul(neighbours).to(index));
      }),
    };
    this.#sums = accumulators();
    this.#partial = accumulators();
    this.#left = mmaFragment(instruction, "a");
    this.#right = each(kind.rows, () => each(wordsPerLane, () => mmaFragment(instruction, "b")));
  }

  write(): void {
    const units = this.args.k.div(this.#chunks * blockDepth);
    for (const sum of this.#sums.flat()) sum.fill(0);
    const warp = subgroup.index;
    const { warps, stages } = this.#shape;
    const progress: Progress = {
      reading: variable(i32, 0),
      filling: variable(i32, 0),
      chunk: variable(i32, warp.mul(this.#chunks)),
    };
    for (let stage = 0; stage < stages - 1; stage++) this.#fill(progress);
    const scales = this.#partial.map(() => variables(u32, this.#groups, 0));
    this.#loadScales(scales, warp, units);
    loop({ from: warp, to: units, step: warps }, (unit) => {
      const present = scales.map((column) => column.map(({ value }) => value));
      this.#loadScales(scales, unit.add(warps), units);
      this.#unit(unit, progress, present);
    });
    copyAsyncWait(0);
    this.#finish();
  }

  /** Starts the copies of the warp's next block of K, or of nothing where it has no more: groups of copies are counted. */
  #fill({ filling, chunk }: Progress): void {
    const { args, kind } = this;
    const { warps, stages } = this.#shape;
    const chunks = args.k.div(blockDepth);
    const at = chunk.value;
    const start = this.#slot(filling.value);
    when(at.lt(chunks), () => {
      const along = at.mul(pieceWords).to(index);
      this.#lines.words.forEach((line, column) => {
        copyAsync(this.#ring, start.add(column * pieceWords), args.words, line.add(along), wordsPerLane);
      });
      if (!kind.aligned) return;
      const depth = at.mul(blockDepth).to(index);
      this.#lines.x.forEach((line, eight) => {
        for (let half = 0; half < 2; half++) {
          const target = start.add((kind.columns + 2 * eight + half) * pieceWords);
          const from = line.add(depth).add(4 * half * neighbours);
          copyAsync(this.#ringOfX, target.mul(2), args.x, from, neighbours);
        }
      });
    });
    copyAsyncCommit();
    filling.value = select(filling.value.eq(stages - 1), 0, filling.value.add(1));
    // The blocks of a unit follow each other; the other warps' units lie in between.
    const next = at.add(1);
    const jump = (warps - 1) * this.#chunks;
    chunk.value =
      this.#chunks === 1 ? next.add(jump) : select(next.floorMod(this.#chunks).eq(0), next.add(jump), next);
  }

  /** A lane's own word among those of a piece. */
  get #word(): Value<I32> {
    return subgroup.lane.mul(wordsPerLane);
  }

  /** The lane's first word in a stage of its warp's ring. */
  #slot(stage: Value<I32>): Value<I32> {
    const pieces = piecesOf(this.kind);
    return subgroup.index
      .mul(this.#shape.stages)
      .add(stage)
      .mul(pieces * pieceWords)
      .add(this.#word);
  }

  /** Those of a unit, or of the last. */
  #loadScales(scales: readonly (readonly Variable<U32>[])[], unit: Value<I32>, units: Value<I32>): void {
    const { args, kind } = this;
    const groups = args.k.div(kind.group);
    const first = unit.min(units.sub(1)).mul(this.#groups);
    scales.forEach((column, number) => {
      const line = this.#firstBlock.add(number).mul(groups).add(first);
      column.forEach((scale, group) => {
        scale.value = args.scales.loadAt(line.add(group).mul(8).add(this.#lane.row));
      });
    });
  }

  /** Adds a unit's products to the sums, group by group. */
  #unit(unit: Value<I32>, progress: Progress, scales: readonly (readonly Value<U32>[])[]): void {
    const { kind } = this;
    const perGroup = kind.group / instructionDepth;
    for (const partial of this.#partial.flat()) partial.fill(0);
    for (let chunk = 0; chunk < this.#chunks; chunk++) {
      // Each lane reads what it has copied itself, so that its own copies are all it waits for.
      copyAsyncWait(this.#shape.stages - 2);
      const start = this.#slot(progress.reading.value);
      const words = this.#partial.map((_, column) =>
        this.#ring.loadVectorAt(wordsPerLane, start.add(column * pieceWords)).elements(),
      );
      this.#loadRight(start, unit.mul(this.#chunks).add(chunk));
      progress.reading.value = select(
        progress.reading.value.eq(this.#shape.stages - 1),
        0,
        progress.reading.value.add(1),
      );
      this.#fill(progress);
      for (let word = 0; word < wordsPerLane; word++) {
        this.#multiply(
          words.map((column) => column[word]!),
          word,
        );
        const done = chunk * wordsPerLane + word + 1;
        if (done % perGroup === 0) this.#scale(scales, done / perGroup - 1);
      }
    }
  }

  /** A block's X; `chunk` is its number. */
  #loadRight(start: Value<I32>, chunk: Value<I32>): void {
    const { kind } = this;
    this.#right.forEach((fragments, eight) => {
      for (let half = 0; half < 2; half++) {
        const piece = start.add((kind.columns + 2 * eight + half) * pieceWords);
        const elements = kind.aligned
          ? this.#ringOfX.loadVectorAt(neighbours, piece.mul(2)).elements()
          : this.#straight(eight, half, chunk);
        for (let pair = 0; pair < neighbours / 2; pair++) {
          const target = fragments[2 * half + Math.floor(pair / 2)]!;
          target.setRegister(pair % 2, vector(...elements.slice(2 * pair, 2 * pair + 2)) as never);
        }
      }
    });
  }

  /** Where rows are not aligned, elements come one by one, and nothing hides their latency. */
  #straight(eight: number, half: number, chunk: Value<I32>): readonly AnyValue[] {
    const at = this.#lines.x[eight]!.add(
      chunk
        .mul(blockDepth)
        .add(4 * half * neighbours)
        .to(index),
    );
    return Array.from({ length: neighbours }, (_, e) => this.args.x.loadAt(at.add(e)));
  }

  /** The products of one instruction's depth. */
  #multiply(words: readonly Value<U32>[], number: number): void {
    this.#partial.forEach((partial, column) => {
      const pairs = unpack4(words[column]!, this.kind.x as never, "signed");
      pairs.forEach((pair, register) => {
        this.#left.setRegister(register, pair as never);
      });
      partial.forEach((sum, eight) => {
        mma(this.#instruction, sum, this.#left, this.#right[eight]![number]!);
      });
    });
  }

  /** Adds a group's scaled sums to the sums. */
  #scale(scales: readonly (readonly Value<U32>[])[], group: number): void {
    this.#sums.forEach((sums, column) => {
      const factors = unpack(scales[column]![group]!, this.kind.x, 2)
        .elements()
        .map((scale) => scale.to(f32) as AnyValue);
      sums.forEach((sum, eight) => {
        const partial = this.#partial[column]![eight]!;
        sum.map((value, i) => {
          const factor = factors[sum.layout!.element(i).row === 0 ? 0 : 1]!;
          return fusedMultiplyAdd(partial.get(i), factor as never, value);
        });
        partial.fill(0);
      });
    });
  }
  /** The warps' sums, added in their order, through the epilogue to D. */
  #finish(): void {
    const { kind, args } = this;
    const { warps } = this.#shape;
    const [width, rows] = [kind.columns * blockColumns, kind.rows * rowsAtOnce];
    const line = lineOf(kind.columns);
    // Where the rings were.
    block.barrier();
    const held = this.#arena.view(f32, warps * rows * line, 0);
    const own = subgroup.index.mul(rows * line);
    this.#sums.forEach((sums, column) => {
      sums.forEach((sum, eight) => {
        const lane = sum.layout!.lane();
        sum.elements().forEach((value, i) => {
          const within = sum.layout!.element(i);
          const n = lane.row.add(within.row + column * blockColumns);
          const m = lane.column.add(within.column + eight * rowsAtOnce);
          held.storeAt(own.add(m.mul(line)).add(n), value as never);
        });
      });
    });
    block.barrier();
    const operands = stepOperands(kind.steps, args as unknown as Readonly<Record<string, unknown>>);
    loop({ from: thread.index, to: rows * width, step: warps * lanes }, (number) => {
      const m = number.div(width);
      const n = number.sub(m.mul(width));
      const [row, column] = [this.#firstRow.add(m), this.#firstBlock.mul(blockColumns).add(n)];
      when(row.lt(args.m).and(column.lt(args.n)), () => {
        const at = m.mul(line).add(n);
        let sum: AnyValue = held.loadAt(at);
        for (let warp = 1; warp < warps; warp++)
          sum = sum.add(held.loadAt(at.add(warp * rows * line)) as never);
        const [value] = combine(
          {
            scaleType: f32,
            alpha: args.alpha,
            beta: args.alpha,
            transforms: {},
            steps: kind.steps,
            stepOperands: operands,
            collectors: undefined,
            target: kind.d,
            source: undefined,
          },
          [sum],
          {
            count: 1,
            along: "C",
            aligned: true,
            offset: { row: 0, column: 0 },
            at: () => ({ row, column }),
          },
        );
        args.d.storeAt(row.to(index).mul(args.leadingD).add(column.to(index)), value as never);
      });
    });
  }
}
