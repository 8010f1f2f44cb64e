/**
 * @file The `wmma` operator: whole 16x16 tiles whose register layout the hardware keeps to itself, for parity with the
 * paper. Transforms between shared memory and registers see elements without coordinates being known, so they are refused
 * here and run on the way into shared memory instead.
 */
import { UnsupportedError } from "../../errors.ts";
import {
  type AnyFragment,
  byteSize,
  f32,
  findInstruction,
  isFloat,
  tf32,
  wmma,
  wmmaFragment,
  wmmaLoad,
  wmmaStore,
} from "../../lang/index.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import type { Tile } from "../../tile/index.ts";
import { type Interner, interner } from "../interner.ts";
import { combineFragments } from "./combine.ts";
import type { FragmentTerm, Operator, OperatorFactory, OperatorTypes, SharedTile } from "./operator.ts";
import { positionIn, sharedType } from "./shared-tile.ts";

interface Operand {
  readonly fragment: AnyFragment;
  major: "row" | "column";
}

/** wmma. `wanted` narrows the choice of shape; 16x16 unless said. */
export function wmmaOperator(wanted: Partial<MatrixInstruction> = {}): OperatorFactory {
  const key = JSON.stringify(Object.entries(wanted).sort());
  return operators(key, () => ({ name: "wmma", create: (types, facts) => createWmma(types, facts, wanted) }));
}

const operators: Interner<OperatorFactory> = interner();

/** The wmma operator with square tiles. */
export const wmmaSync: OperatorFactory = wmmaOperator();

/** Whether a target has a wmma instruction for these types. */
export function hasWmma(types: OperatorTypes, facts: TargetFacts): boolean {
  const names = { a: types.a.name, b: types.b.name, accumulator: types.accumulator.name };
  return facts.subgroup.width === 32 && findInstruction(facts.wmma, names) !== undefined;
}

function createWmma(
  types: OperatorTypes,
  facts: TargetFacts,
  wanted: Partial<MatrixInstruction>,
): Operator<Operand, Operand, AnyFragment> {
  const names = { a: types.a.name, b: types.b.name, accumulator: types.accumulator.name };
  const candidates = facts.wmma.filter(
    (instruction) => findInstruction([instruction], { ...names, ...wanted }) !== undefined,
  );
  const instruction = candidates.find(({ m, n }) => m === n) ?? candidates[0];
  if (instruction === undefined || facts.subgroup.width !== 32) {
    throw new UnsupportedError(
      `${facts.name} has no wmma instruction for ${names.a}·${names.b}→${names.accumulator}; the mma or the plain operator (fma) serve`,
    );
  }
  const { m, n, k } = instruction;
  const shared = { a: sharedType(types.a), b: sharedType(types.b) };
  const create = (use: "a" | "b"): Operand => ({ fragment: wmmaFragment(instruction, use), major: "row" });
  const load = (use: "a" | "b", target: Operand, source: SharedTile, tile: Tile<"R" | "C">): void => {
    target.major = source.layout.major;
    wmmaLoad(
      instruction,
      use,
      target.fragment,
      source.memory,
      positionIn(source, tile),
      source.leading,
      source.layout.major,
    );
    if (types[use] === tf32) target.fragment.map((value) => value.to(tf32).to(f32));
  };
  const refuse = (transform: unknown): void => {
    if (transform !== undefined) {
      throw new UnsupportedError(
        "wmma keeps its register layout to itself, so a sharedToRegister transform cannot have coordinates; use globalToShared, or the mma operator",
      );
    }
  };
  return {
    name: `wmma m${m}n${n}k${k}`,
    shape: { m, n, k },
    types,
    shared,
    opaque: true,
    sharedMajor: (_operand, global) => global,
    // wmma wants lines of a multiple of 16 bytes.
    sharedPadding: (operand) => 16 / byteSize(shared[operand]),
    createA: () => create("a"),
    createB: () => create("b"),
    createAccumulator() {
      const held = wmmaFragment(instruction, "accumulator");
      held.fill(0);
      return held;
    },
    loadA(target, source, tile, transform) {
      refuse(transform);
      load("a", target, source, tile);
    },
    loadB(target, source, tile, transform) {
      refuse(transform);
      load("b", target, source, tile);
    },
    multiply: (accumulator, a, b) => wmma(instruction, accumulator, a.fragment, b.fragment, a.major, b.major),
    storeD: (accumulator, target, tile) =>
      wmmaStore(
        instruction,
        accumulator,
        target.memory,
        positionIn(target, tile),
        target.leading,
        target.layout.major,
      ),
    ...(isFloat(types.a) && isFloat(types.b)
      ? {
          combineFactors(target: Operand, terms: readonly FragmentTerm<Operand>[]) {
            target.major = terms[0].fragment.major;
            const parts = terms.map(({ fragment, sign }) => ({ fragment: fragment.fragment, sign }));
            combineFragments(target.fragment, parts, types.a);
          },
        }
      : {}),
    combineAccumulators: (target, terms) => combineFragments(target, terms, types.accumulator),
  };
}
