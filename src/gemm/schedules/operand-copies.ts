/**
 * @file Which copy engine brings an operand: asynchronous copies where assembly and components permit them, else registers.
 */
import { block, byteSize, type ElementType, type StorageType } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import { accessWidth, type GemmKind } from "../kind.ts";
import { streamsOf } from "../layouts/layout.ts";
import type { Operator } from "../operators/operator.ts";
import type { Transform, Transforms } from "../transforms.ts";
import type { Assembly } from "./assembly.ts";
import { AsyncCopy, asyncRefusal, smallestCopy } from "./async-copy.ts";
import type { CopyEngine, CopyOptions } from "./copy-engine.ts";
import type { GemmArguments } from "./kernel-interface.ts";
import { StagedCopy } from "./staged-copy.ts";

/** How an operand comes. */
export interface OperandCopy {
  /** Elements of one access. */
  readonly width: number;
  /** Why it comes through registers; undefined where asynchronous copies bring it. */
  readonly throughRegisters: string | undefined;
}

/** The choice for one operand. */
export function operandCopy(
  kind: GemmKind,
  operand: "a" | "b",
  operator: Operator,
  facts: TargetFacts,
  assembly: Assembly,
): OperandCopy {
  const { layout, type } = kind[operand];
  const width = accessWidth(kind[operand], lineOf(kind, operand), kind.params.copies?.[operand]);
  if (!assembly.asynchronous)
    return { width, throughRegisters: `${assembly.name} has no asynchronous copies` };
  const reason = asyncRefusal(kind, operand, operator, facts);
  if (reason !== undefined) return { width, throughRegisters: reason };
  // Where the shared tile lies the other way, each element is a copy of its own.
  const together = operator.sharedMajor(operand, layout.major) === layout.major ? width : 1;
  if (together * byteSize(type) >= smallestCopy) return { width: together, throughRegisters: undefined };
  return {
    width,
    throughRegisters: `the tile leaves ${operand.toUpperCase()} only ${together} elements an access`,
  };
}

/** Elements that a thread brings through registers at a time: a whole word of the shared tile, where it lies the same way. */
function registerRun(kind: GemmKind, operand: "a" | "b", operator: Operator, width: number): number {
  const { layout } = kind[operand];
  const numbers = streamsOf(layout).every(({ components }) => components.length === 1);
  if (!numbers || operator.sharedMajor(operand, layout.major) !== layout.major) return width;
  const run = Math.max(width, 32 / operator.shared[operand].bits);
  return lineOf(kind, operand) % run === 0 ? run : width;
}

/** Elements of a block's tile that are neighbours in memory. */
function lineOf({ params, ...kind }: GemmKind, operand: "a" | "b"): number {
  const { m, n, k } = params.block;
  const alongK = kind[operand].layout.major === (operand === "a" ? "row" : "column");
  return alongK ? k : operand === "a" ? m : n;
}

/** A transform whose results have no more bits than the type that is multiplied, where the shared tile would hold more. */
function rounded(
  transform: Transform | undefined,
  multiplied: ElementType,
  shared: StorageType,
): Transform | undefined {
  if (transform === undefined || multiplied.bits >= shared.bits) return transform;
  return (x, at) => transform(x, at).to(multiplied as StorageType);
}

/** What engines work with inside the kernel. */
export interface CopyContext {
  readonly args: GemmArguments;
  readonly operator: Operator;
  readonly transforms: Transforms;
  readonly extras: ExtrasOf<ExtraValue>;
}

/** For `explain()`: the engine, and where a faster one was refused, why. */
export function describeCopy(
  kind: GemmKind,
  operand: "a" | "b",
  operator: Operator,
  facts: TargetFacts,
  assembly: Assembly,
): string {
  const { width, throughRegisters } = operandCopy(kind, operand, operator, facts, assembly);
  const bytes = width * byteSize(kind[operand].type);
  if (throughRegisters === undefined) return `by asynchronous copies of ${bytes} bytes`;
  const because = assembly.asynchronous ? ` (${throughRegisters})` : "";
  return `through registers, ${bytes} bytes an access${because}`;
}

/** The engines of a kind's operands. */
export function copyEngines(
  kind: GemmKind,
  { args, operator, transforms, extras }: CopyContext,
  facts: TargetFacts,
  assembly: Assembly,
): { readonly a: CopyEngine; readonly b: CopyEngine } {
  const { m, n, k } = kind.params.block;
  const engine = (
    operand: "a" | "b",
    matrix: Pick<CopyOptions, "source" | "leading" | "rows" | "columns" | "tile" | "depth">,
  ): CopyEngine => {
    const { width, throughRegisters } = operandCopy(kind, operand, operator, facts, assembly);
    const { layout, type } = kind[operand];
    const options = { ...matrix, layout, type, extras: extras[operand] ?? [], width, threads: block.size };
    if (throughRegisters === undefined) return new AsyncCopy(options);
    const transform = rounded(
      transforms[operand]?.globalToShared,
      operator.types[operand],
      operator.shared[operand],
    );
    const run = registerRun(kind, operand, operator, width);
    return new StagedCopy({ ...options, transform, run, outside: operator.outside ?? 0 });
  };
  return {
    a: engine("a", {
      source: args.a,
      leading: args.leadingA,
      rows: args.m,
      columns: args.k,
      tile: { rows: m, columns: k },
      depth: "C",
    }),
    b: engine("b", {
      source: args.b,
      leading: args.leadingB,
      rows: args.k,
      columns: args.n,
      tile: { rows: k, columns: n },
      depth: "R",
    }),
  };
}
