/**
 * @file The kernel of a product with 4-bit weights: Dᵀ = Wᵀ · Xᵀ. The weights stream by once, in lines of 512 bytes a warp;
 * they are the left operand of `mma.sync`, whose fragments are made of nibbles in registers (lop3 and a subtraction, see
 * `unpack4`), and the activations the right one, eight rows at a time. A group's sums are made in f32 and scaled when the
 * group ends. Warps of a block share K; at the end they add up in a fixed order, and threads run the epilogue.
 *
 * What multiplies is what Marlin does (Frantar et al., "MARLIN: Mixed-Precision Auto-Regressive Parallel Inference on Large
 * Language Models", 2024); the loads of the next weights are under way while the present ones are multiplied.
 */
import {
  type AnyFragment,
  type AnyValue,
  block,
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
  type StorageType,
  shared,
  subgroup,
  thread,
  type U32,
  u32,
  unpack,
  unpack4,
  type Value,
  type Variable,
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

/** Warps of a block, which share K. */
export const int4Warps = 8;
/** Rows that one instruction multiplies. */
export const rowsAtOnce = 8;
const lanes = 32;
/** Elements of K of one instruction, and in how many of them a lane's neighbours in X lie. */
const instructionDepth = 16;
const neighbours = 8;

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
    block: int4Warps * lanes,
    body: (args, facts) => new Int4Body(kind, args as unknown as Int4Arguments, facts).write(),
  });
}

/** What a warp has of one unit of K in registers. */
interface Held {
  /** By block of columns and block of K, a lane's words. */
  readonly words: readonly (readonly Variable<U32>[])[];
  /** By eight rows and instruction of the unit. */
  readonly x: readonly (readonly AnyFragment[])[];
  /** By block of columns and group of the unit: of two columns. */
  readonly scales: readonly (readonly Variable<U32>[])[];
}

class Int4Body {
  readonly #instruction: MatrixInstruction;
  /** Blocks of K and groups of a unit, which a warp takes at once. */
  readonly #chunks: number;
  readonly #groups: number;
  readonly #firstBlock: Value<I32>;
  readonly #firstRow: Value<I32>;
  readonly #lane: { readonly row: Value<I32>; readonly quad: Value<I32> };
  readonly #sums: readonly (readonly AnyFragment[])[];
  readonly #partial: readonly (readonly AnyFragment[])[];
  readonly #left: AnyFragment;

  constructor(
    private readonly kind: Int4Kind,
    private readonly args: Int4Arguments,
    facts: TargetFacts,
  ) {
    const instruction = int4Instruction(kind.x, facts);
    if (instruction === undefined) throw new RangeError(`no instruction for ${kind.x.name}`);
    this.#instruction = instruction;
    this.#chunks = Math.max(1, kind.group / blockDepth);
    this.#groups = (this.#chunks * blockDepth) / kind.group;
    this.#firstBlock = block.id.x.mul(kind.columns);
    this.#firstRow = block.id.y.mul(kind.rows * rowsAtOnce);
    const { lane } = subgroup;
    this.#lane = { row: lane.floorDiv(4), quad: lane.floorMod(4) };
    const fragments = (): readonly (readonly AnyFragment[])[] =>
      Array.from({ length: kind.columns }, () =>
        Array.from({ length: kind.rows }, () => mmaFragment(instruction, "accumulator")),
      );
    this.#sums = fragments();
    this.#partial = fragments();
    this.#left = mmaFragment(instruction, "a");
  }

  write(): void {
    const units = this.args.k.div(this.#chunks * blockDepth);
    const last = units.sub(1);
    for (const sum of this.#sums.flat()) sum.fill(0);
    const [one, other] = [this.#holder(), this.#holder()];
    const warp = subgroup.index;
    this.#load(one, warp.min(last));
    loop({ from: warp, to: units, step: 2 * int4Warps }, (unit) => {
      const next = unit.add(int4Warps);
      this.#load(other, next.min(last));
      this.#multiply(one);
      this.#load(one, next.add(int4Warps).min(last));
      when(next.lt(units), () => this.#multiply(other));
    });
    this.#finish();
  }

  #holder(): Held {
    const { columns, rows } = this.kind;
    const perUnit = (this.#chunks * blockDepth) / instructionDepth;
    const each = <T>(count: number, make: () => T): readonly T[] => Array.from({ length: count }, make);
    return {
      words: each(columns, () => variables(u32, this.#chunks * wordsPerLane, 0)),
      x: each(rows, () => each(perUnit, () => mmaFragment(this.#instruction, "b"))),
      scales: each(columns, () => variables(u32, this.#groups, 0)),
    };
  }

  /** Starts all loads of a unit. */
  #load(held: Held, unit: Value<I32>): void {
    const { args, kind } = this;
    const chunks = args.k.div(blockDepth);
    const first = unit.mul(this.#chunks);
    held.words.forEach((words, column) => {
      const line = this.#firstBlock.add(column).mul(chunks).add(first).to(index);
      for (let chunk = 0; chunk < this.#chunks; chunk++) {
        const at = line
          .add(chunk)
          .mul(lanes * wordsPerLane)
          .add(subgroup.lane.mul(wordsPerLane).to(index));
        args.words
          .loadVectorAt(wordsPerLane, at)
          .elements()
          .forEach((word, i) => {
            words[chunk * wordsPerLane + i]!.value = word;
          });
      }
    });
    const groups = args.k.div(kind.group);
    held.scales.forEach((scales, column) => {
      const line = this.#firstBlock.add(column).mul(groups).add(unit.mul(this.#groups));
      scales.forEach((scale, group) => {
        scale.value = args.scales.loadAt(line.add(group).mul(8).add(this.#lane.row));
      });
    });
    held.x.forEach((fragments, eight) => {
      const row = this.#firstRow.add(this.#lane.row).add(eight * rowsAtOnce);
      // Rows beyond X are its last once more; nobody stores what becomes of them.
      const line = row.min(args.m.sub(1)).to(index).mul(args.leadingX);
      const start = line.add(first.mul(blockDepth).add(this.#lane.quad.mul(neighbours)).to(index));
      for (let two = 0; two < fragments.length; two += 2) {
        const at = start.add((two / 2) * 4 * neighbours);
        const elements = kind.aligned
          ? args.x.loadVectorAt(neighbours, at).elements()
          : Array.from({ length: neighbours }, (_, e) => args.x.loadAt(at.add(e)));
        for (let pair = 0; pair < neighbours / 2; pair++) {
          const target = fragments[two + Math.floor(pair / 2)]!;
          target.setRegister(pair % 2, vector(...elements.slice(2 * pair, 2 * pair + 2)) as never);
        }
      }
    });
  }

  /** Adds a unit's products to the sums, group by group. */
  #multiply(held: Held): void {
    const { kind } = this;
    const perGroup = kind.group / instructionDepth;
    for (let group = 0; group < this.#groups; group++) {
      for (const partial of this.#partial.flat()) partial.fill(0);
      for (let inner = group * perGroup; inner < (group + 1) * perGroup; inner++) {
        this.#partial.forEach((partial, column) => {
          const pairs = unpack4(held.words[column]![inner]!.value, kind.x as never, "signed");
          pairs.forEach((pair, register) => {
            this.#left.setRegister(register, pair as never);
          });
          partial.forEach((sum, eight) => {
            mma(this.#instruction, sum, this.#left, held.x[eight]![inner]!);
          });
        });
      }
      this.#sums.forEach((sums, column) => {
        const scales = unpack(held.scales[column]![group]!.value, kind.x, 2)
          .elements()
          .map((scale) => scale.to(f32) as AnyValue);
        sums.forEach((sum, eight) => {
          const partial = this.#partial[column]![eight]!;
          sum.map((value, i) => {
            const scale = scales[sum.layout!.element(i).row === 0 ? 0 : 1]!;
            return fusedMultiplyAdd(partial.get(i), scale as never, value);
          });
        });
      });
    }
  }

  /** The warps' sums, added in their order, through the epilogue to D. */
  #finish(): void {
    const { kind, args } = this;
    const [width, rows] = [kind.columns * blockColumns, kind.rows * rowsAtOnce];
    // Four more than a line has, so that the lanes' elements of two neighbouring rows lie in different banks.
    const line = width + 4;
    const held = shared(f32, int4Warps * rows * line);
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
    loop({ from: thread.index, to: rows * width, step: int4Warps * lanes }, (number) => {
      const m = number.div(width);
      const n = number.sub(m.mul(width));
      const [row, column] = [this.#firstRow.add(m), this.#firstBlock.mul(blockColumns).add(n)];
      when(row.lt(args.m).and(column.lt(args.n)), () => {
        const at = m.mul(line).add(n);
        let sum: AnyValue = held.loadAt(at);
        for (let warp = 1; warp < int4Warps; warp++)
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
