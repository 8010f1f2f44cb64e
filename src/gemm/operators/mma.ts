/**
 * @file The tensor-core operator: `mma.sync` on fragments that `ldmatrix` or ordinary loads fill.
 *
 * One call multiplies m16 by n16 where ldmatrix brings two neighbouring B fragments at once, else a single instruction.
 * Elements of up to 32 bits in K order load through ldmatrix, whose rows are 16 bytes of whatever type; 16-bit elements
 * also in the other order, which it transposes. 8-bit elements are put in K order on the way to shared memory; what is
 * left loads element by element.
 */
import { UnsupportedError } from "../../errors.ts";
import {
  type AnyFragment,
  type AnyValue,
  byteSize,
  type ElementType,
  type FragmentUse,
  findInstruction,
  isFloat,
  loadMatrix,
  mma,
  mmaFragment,
  type StorageType,
  subgroup,
  tf32,
} from "../../lang/index.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import { type Tile, translate } from "../../tile/index.ts";
import { type Interner, interner } from "../interner.ts";
import { joined, separate } from "../transforms.ts";
import { combineFragments } from "./combine.ts";
import type {
  FragmentTerm,
  FragmentTransform,
  Operator,
  OperatorFactory,
  OperatorTypes,
  SharedTile,
} from "./operator.ts";
import { positionIn, sharedType } from "./shared-tile.ts";

/** mma.sync. `wanted` narrows the choice of instruction. */
export function mmaOperator(wanted: Partial<MatrixInstruction> = {}): OperatorFactory {
  const key = JSON.stringify(Object.entries(wanted).sort());
  return operators(key, () => ({ name: "mma", create: (types, facts) => createMma(types, facts, wanted) }));
}

const operators: Interner<OperatorFactory> = interner();

/** The tensor-core operator with the widest instruction there is. */
export const mmaSync: OperatorFactory = mmaOperator();

function names(types: OperatorTypes): Partial<MatrixInstruction> {
  return { a: types.a.name, b: types.b.name, accumulator: types.accumulator.name };
}

/** Whether a target has a tensor-core instruction for these types. */
export function hasMma(types: OperatorTypes, facts: TargetFacts): boolean {
  return facts.subgroup.width === 32 && findInstruction(facts.mma, names(types)) !== undefined;
}

function choose(
  types: OperatorTypes,
  facts: TargetFacts,
  wanted: Partial<MatrixInstruction>,
): MatrixInstruction {
  const candidates = facts.mma.filter(
    (instruction) => findInstruction([instruction], { ...names(types), ...wanted }) !== undefined,
  );
  if (facts.subgroup.width !== 32 || candidates.length === 0) {
    throw new UnsupportedError(
      `${facts.name} has no mma instruction for ${types.a.name}·${types.b.name}→${types.accumulator.name}; the plain operator (fma) works for any type`,
    );
  }
  // f64 fragments are wide: the shallow instruction leaves registers for a second buffer of them. Elsewhere the deepest wins.
  const deepest = types.a.name === "f64" ? 4 : 64;
  const usable = candidates.filter((instruction) => instruction.k <= deepest);
  return (usable.length > 0 ? usable : candidates).reduce((best, next) =>
    next.m * next.k > best.m * best.k ? next : best,
  );
}

function createMma(
  types: OperatorTypes,
  facts: TargetFacts,
  wanted: Partial<MatrixInstruction>,
): Operator<AnyFragment, AnyFragment, readonly AnyFragment[]> {
  const instruction = choose(types, facts, wanted);
  const { m, n, k } = instruction;
  const shared = { a: sharedType(types.a), b: sharedType(types.b) };
  // A matrix of ldmatrix is eight rows of 16 bytes; an operand has one or two of them along K.
  const matrices = (k * byteSize(shared.b)) / 16;
  const loadable = facts.loadMatrix && m === 16 && shared.b.bits <= 32 && (matrices === 1 || matrices === 2);
  const across = loadable && matrices === 2 ? 2 : 1;
  const kMajor = (operand: "a" | "b"): "row" | "column" => (operand === "a" ? "row" : "column");
  const throughMatrices = (source: SharedTile, operand: "a" | "b", transform: unknown): boolean =>
    loadable &&
    transform === undefined &&
    (source.layout.major === kMajor(operand) || source.memory.type.bits === 16);
  return {
    name: `mma m${m}n${n}k${k}`,
    shape: { m, n: n * across, k },
    types,
    shared,
    opaque: false,
    sharedMajor: (operand, global) => (loadable && shared[operand].bits === 8 ? kMajor(operand) : global),
    sharedPadding: (operand, major) =>
      lineBytes(shared[operand], major === kMajor(operand)) / byteSize(shared[operand]),
    swizzles: true,
    createA: () => mmaFragment(instruction, "a"),
    createB: () => mmaFragment(instruction, "b", across),
    createAccumulator: () =>
      Array.from({ length: across }, () => {
        const held = mmaFragment(instruction, "accumulator");
        held.fill(0);
        return held;
      }),
    loadA(target, source, tile, transform) {
      if (throughMatrices(source, "a", transform)) {
        loadAMatrices(target, source, tile, matrices);
        rounded(target, types.a);
      } else loadElements(target, source, tile, "a", transform, types.a);
    },
    loadB(target, source, tile, transform) {
      if (throughMatrices(source, "b", transform)) {
        loadBMatrices(target, source, tile, matrices, across);
        rounded(target, types.b);
      } else loadElements(target, source, tile, "b", transform, types.b);
    },
    multiply(accumulator, a, b) {
      accumulator.forEach((held, j) => {
        mma(instruction, held, a, b, j);
      });
    },
    storeD(accumulator, target, tile) {
      accumulator.forEach((held, j) => {
        storeAccumulator(held, target, translate(tile, { C: j * n }));
      });
    },
    // Of integers narrower than a register not even the negative is always there.
    ...(isFloat(types.a) && isFloat(types.b)
      ? {
          combineFactors: (target: AnyFragment, terms: readonly FragmentTerm<AnyFragment>[]) =>
            combineFragments(target, terms, types.a),
        }
      : {}),
    combineAccumulators(target, terms) {
      target.forEach((held, j) => {
        const parts = terms.map(({ fragment, sign }) => ({ fragment: fragment[j], sign }));
        combineFragments(held, parts, types.accumulator);
      });
    },
  };
}

/** Bytes of each line that lanes read in one pass over the banks: what keeps lines off each other's. */
function lineBytes(type: StorageType, kMajor: boolean): number {
  // ldmatrix takes 16 bytes of eight lines, and so do 32-bit loads of four K by eight lines. Four lines K of eight
  // 32-bit elements, and 64-bit loads in either order, take 32 bytes of four lines.
  return type.bits === 64 || (type.bits === 32 && !kMajor) ? 32 : 16;
}

/** tf32 numbers are held in f32 registers, rounded to ten bits. */
function rounded(target: AnyFragment, compute: ElementType): void {
  if (compute === tf32) target.map((value) => value.to(tf32).to(target.type));
}

/** A through ldmatrix: matrices in the order (rows 0-7, first K), (8-15, first), (0-7, second), (8-15, second). */
function loadAMatrices(
  target: AnyFragment,
  source: SharedTile,
  tile: Tile<"R" | "C">,
  matrices: number,
): void {
  const { lane } = subgroup;
  const count = matrices === 2 ? 4 : 2;
  const elements = 16 / byteSize(source.memory.type);
  const kMajor = source.layout.major === "row";
  const row = kMajor ? lane.floorMod(16) : lane.floorDiv(8).floorMod(2).mul(8);
  const depth = kMajor ? lane.floorDiv(16).mul(elements) : lane.floorMod(8).add(lane.floorDiv(16).mul(8));
  // With two matrices the addresses of lanes 16 to 31 are not used, but must stay inside the array.
  const within = count === 4 ? { R: row, C: depth } : kMajor ? { R: row } : { R: row, C: lane.floorMod(8) };
  const at = positionIn(source, translate(tile, within));
  loadMatrix(target, count, source.memory, at, { transpose: !kMajor });
}

/**
 * B through ldmatrix: for each eight columns the matrix of the first K and, where there are two, of the second. Two
 * neighbours of eight columns come together.
 */
function loadBMatrices(
  target: AnyFragment,
  source: SharedTile,
  tile: Tile<"R" | "C">,
  matrices: number,
  across: number,
): void {
  const { lane } = subgroup;
  const count = (matrices * across) as 1 | 2 | 4;
  const elements = 16 / byteSize(source.memory.type);
  const within = lane.floorMod(8);
  // Lanes 8 to 15 address the second K half, lanes 16 to 31 the second eight columns; where there is none, the first again.
  const half = lane.floorDiv(8).floorMod(2).mul(elements);
  const neighbour = lane.floorDiv(16).mul(8);
  const kMajor = source.layout.major === "column";
  const depth = kMajor ? (matrices === 2 ? half : 0) : matrices === 2 ? lane.floorMod(16) : within;
  const column = across === 2 ? (kMajor ? neighbour.add(within) : neighbour) : kMajor ? within : 0;
  const at = positionIn(source, translate(tile, { R: depth, C: column }));
  loadMatrix(target, count, source.memory, at, { transpose: !kMajor });
}

/** Loads a fragment by its layout: whole registers where their elements are neighbours in memory, else one by one. */
function loadElements(
  target: AnyFragment,
  source: SharedTile,
  tile: Tile<"R" | "C">,
  use: Exclude<FragmentUse, "accumulator">,
  transform: FragmentTransform | undefined,
  compute: ElementType,
): void {
  const { layout, packed } = target;
  if (layout === undefined)
    throw new UnsupportedError("an opaque fragment cannot be loaded element by element");
  const lane = layout.lane();
  const moved = translate(tile, { R: lane.row, C: lane.column });
  const along = use === "a" ? "C" : "R";
  const neighbours = source.layout.major === (use === "a" ? "row" : "column");
  const place = { origin: source.origin, leading: source.leading };
  for (let number = 0; number < target.registers; number++) {
    const { row, column } = layout.element(number * packed);
    const at = translate(moved, { R: row, C: column });
    const step = neighbours ? packed : 1;
    const values: AnyValue[] = [];
    for (let e = 0; e < packed; e += step) {
      const part = translate(at, { [along]: e } as never).resize({
        R: along === "R" ? step : 1,
        C: along === "C" ? step : 1,
      });
      const elements = source.layout.load(source.memory, place, part as Tile<"R" | "C">);
      if (transform === undefined && compute === source.memory.type && step === packed) {
        target.setRegister(number, elements);
        continue;
      }
      separate(elements).forEach((value, i) => {
        const origin = translate(part as Tile<"R" | "C">, { [along]: i } as never);
        const changed =
          transform === undefined ? value : transform(value, origin.origin("R"), origin.origin("C"));
        // tf32 numbers are held in f32 registers, rounded to ten bits.
        values.push(changed.to(compute).to(target.type));
      });
    }
    if (values.length > 0) target.setRegister(number, joined(values));
  }
}

/** Stores an accumulator by its layout: pairs of neighbours as one access. */
export function storeAccumulator(held: AnyFragment, target: SharedTile, tile: Tile<"R" | "C">): void {
  const { layout } = held;
  if (layout === undefined)
    throw new UnsupportedError("an opaque accumulator is stored by its own instruction");
  const lane = layout.lane();
  const moved = translate(tile, { R: lane.row, C: lane.column });
  const place = { origin: target.origin, leading: target.leading };
  const wide = target.layout.major === "row" ? 2 : 1;
  const values = held.elements();
  for (let i = 0; i < values.length; i += wide) {
    const { row, column } = layout.element(i);
    const part = translate(moved, { R: row, C: column }).resize({ R: 1, C: wide });
    const stored = values.slice(i, i + wide).map((value) => value.to(target.memory.type));
    target.layout.store(target.memory, place, part, joined(stored));
  }
}
