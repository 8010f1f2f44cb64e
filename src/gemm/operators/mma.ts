/**
 * @file The tensor-core operator: `mma.sync` on fragments that `ldmatrix` or ordinary loads fill.
 *
 * One call multiplies m16 by n16 where ldmatrix brings two neighbouring B fragments at once, else a single instruction.
 * 16-bit elements load through ldmatrix from either order (transposing when the contiguous direction is not K); 8-bit
 * elements in K order load through it as pairs; everything else loads element by element.
 */
import { UnsupportedError } from "../../errors.ts";
import {
  type AnyFragment,
  type AnyValue,
  byteSize,
  type ElementType,
  type FragmentUse,
  findInstruction,
  loadMatrix,
  mma,
  mmaFragment,
  subgroup,
} from "../../lang/index.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import { type Tile, translate } from "../../tile/index.ts";
import { joined, separate } from "../transforms.ts";
import type { FragmentTransform, Operator, OperatorFactory, OperatorTypes, SharedTile } from "./operator.ts";
import { positionIn, sharedType } from "./shared-tile.ts";

/** mma.sync. `wanted` narrows the choice of instruction. */
export function mmaOperator(wanted: Partial<MatrixInstruction> = {}): OperatorFactory {
  return { name: "mma", create: (types, facts) => createMma(types, facts, wanted) };
}

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
  // f64 fragments are wide: the middle depth leaves registers for a larger tile. Elsewhere the deepest instruction wins.
  const deepest = types.a.name === "f64" ? 8 : 64;
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
  const sixteenBits = shared.b.bits === 16 && facts.loadMatrix;
  const across = sixteenBits && k === 16 ? 2 : 1;
  return {
    name: `mma m${m}n${n}k${k}`,
    shape: { m, n: n * across, k },
    types,
    shared,
    opaque: false,
    sharedMajor: (_operand, global) => global,
    sharedPadding: (operand) => 16 / byteSize(shared[operand]),
    createA: () => mmaFragment(instruction, "a"),
    createB: () => mmaFragment(instruction, "b", across),
    createAccumulator: () =>
      Array.from({ length: across }, () => {
        const held = mmaFragment(instruction, "accumulator");
        held.fill(0);
        return held;
      }),
    loadA(target, source, tile, transform) {
      if (sixteenBits && transform === undefined) loadAMatrices(target, source, tile, k);
      else loadElements(target, source, tile, "a", transform, types.a);
    },
    loadB(target, source, tile, transform) {
      if (sixteenBits && transform === undefined) loadBMatrices(target, source, tile, k, across);
      else loadElements(target, source, tile, "b", transform, types.b);
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
  };
}

/** A through ldmatrix: matrices in the order (rows 0-7, K 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15). */
function loadAMatrices(target: AnyFragment, source: SharedTile, tile: Tile<"R" | "C">, k: number): void {
  const { lane } = subgroup;
  const count = k === 16 ? 4 : 2;
  const kMajor = source.layout.major === "row";
  const row = kMajor ? lane.floorMod(16) : lane.floorDiv(8).floorMod(2).mul(8);
  const depth = kMajor ? lane.floorDiv(16).mul(8) : lane.floorMod(8).add(lane.floorDiv(16).mul(8));
  // With two matrices the addresses of lanes 16 to 31 are not used, but must stay inside the array.
  const within = count === 4 ? { R: row, C: depth } : kMajor ? { R: row } : { R: row, C: lane.floorMod(8) };
  const at = positionIn(source, translate(tile, within));
  loadMatrix(target, count, source.memory, at, { transpose: !kMajor });
}

/**
 * B through ldmatrix: for each eight columns the matrices of K 0-7 and, with a depth of 16, K 8-15. Two neighbours of
 * eight columns come together.
 */
function loadBMatrices(
  target: AnyFragment,
  source: SharedTile,
  tile: Tile<"R" | "C">,
  k: number,
  across: number,
): void {
  const { lane } = subgroup;
  const count = ((k / 8) * across) as 1 | 2 | 4;
  const within = lane.floorMod(8);
  // Lanes 8 to 15 address the second K half, lanes 16 to 31 the second eight columns; where there is none, the first again.
  const half = lane.floorDiv(8).floorMod(2).mul(8);
  const neighbour = lane.floorDiv(16).mul(8);
  const kMajor = source.layout.major === "column";
  const depth = kMajor ? (k === 16 ? half : 0) : k === 16 ? lane.floorMod(16) : within;
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
