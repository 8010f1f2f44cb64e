/**
 * @file The asynchronous copy engine (cp.async): 4, 8 or 16 bytes at a time from global to shared memory past the
 * registers, so that several K steps can be on their way at once. What lies outside the matrix becomes zero by the size that
 * is read.
 *
 * Elements keep their type and their order along a line. A shared tile that lies the other way is written element by
 * element, where elements are as large as a copy may be small.
 */
import { byteSize, constant, copyAsync, type I32, i32, select, type Value, when } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type Tile, translate } from "../../tile/index.ts";
import type { GemmKind } from "../kind.ts";
import { factsOf } from "../layouts/layout.ts";
import type { Operator } from "../operators/operator.ts";
import {
  type CopyEngine,
  type CopyOptions,
  type CopyStep,
  shareOf,
  type ThreadShare,
} from "./copy-engine.ts";

/** Bytes of the smallest asynchronous copy. */
export const smallestCopy = 4;

/** Why an operand cannot come by asynchronous copies; undefined when it can. */
export function asyncRefusal(
  kind: Pick<GemmKind, "a" | "b" | "transforms">,
  operand: "a" | "b",
  operator: Operator,
  facts: TargetFacts,
): string | undefined {
  const { type, layout, alignment } = kind[operand];
  const name = operand.toUpperCase();
  if (!facts.asyncCopy) return "the target has no asynchronous copies";
  if (kind.transforms[operand]?.globalToShared !== undefined)
    return `${name} has a transform on its way to shared memory`;
  if (type !== operator.shared[operand])
    return `${name} is stored as ${type.name} and lies in shared memory as ${operator.shared[operand].name}`;
  if ((operator.outside ?? 0) !== 0)
    return `elements outside ${name} count as ${String(operator.outside)}, and copies fill with zero`;
  if (factsOf(layout).movement === "registers" || layout.counts !== undefined)
    return `${name}'s layout (${layout.name}) is read through registers`;
  const alike = operator.sharedMajor(operand, layout.major) === layout.major;
  if (!alike && byteSize(type) < smallestCopy)
    return `${name}'s ${type.name} elements change order on their way, and are smaller than ${smallestCopy} bytes`;
  if (alike && Math.max(alignment, byteSize(type)) < smallestCopy)
    return `${name}'s lines are aligned to ${alignment} bytes, and copies move at least ${smallestCopy}`;
  return undefined;
}

/** cp.async from a matrix to a shared tile. */
export class AsyncCopy implements CopyEngine {
  readonly asynchronous: boolean = true;
  readonly #share: ThreadShare;
  readonly #bytes: number;

  constructor(private readonly options: CopyOptions) {
    this.#share = shareOf(options);
    this.#bytes = options.width * byteSize(options.type);
  }

  issue(step: CopyStep): void {
    const { parts, active } = this.#share;
    when(active, () => {
      for (const part of parts) this.#copy(step, part, this.#validBytes(step, part));
    });
  }

  issueInner(step: CopyStep, part: number, parts: number): void {
    const { parts: all, active } = this.#share;
    when(active, () => {
      all.forEach((own, i) => {
        if (i % parts === part) this.#copy(step, own, this.#allOrNothing(step, own));
      });
    });
  }

  arrive(): void {}

  #copy({ target, row, column }: CopyStep, part: Tile<"R" | "C">, validBytes: Value<I32>): void {
    const { source, layout, leading, extras, width } = this.options;
    const to = target.layout.position!({ origin: target.origin, leading: target.leading }, part);
    const from = layout.position!({ origin: 0, leading, extras }, translate(part, { R: row, C: column }));
    copyAsync(target.memory as never, to as Value<I32>, source as never, from, width, { validBytes });
  }

  /**
   * Bytes of a run inside lines that end within the matrix: all where it begins inside. A run over the edge of M or N
   * reads on into the rest of its line, which reaches only rows or columns of D that do not exist.
   */
  #allOrNothing(step: CopyStep, part: Tile<"R" | "C">): Value<I32> {
    if (factsOf(this.options.layout).movement !== "box") return this.#validBytes(step, part);
    const other = this.options.depth === "R" ? "C" : "R";
    return select(this.#start(step, part, other).lt(this.#extent(other)), constant(i32, this.#bytes), 0);
  }

  /** Bytes of a run anywhere: what of it lies inside. */
  #validBytes(step: CopyStep, part: Tile<"R" | "C">): Value<I32> {
    const { layout, width, type } = this.options;
    const [line, along] = layout.major === "row" ? (["R", "C"] as const) : (["C", "R"] as const);
    const left = this.#extent(along).sub(this.#start(step, part, along));
    const bytes = left.max(0).min(width).mul(byteSize(type));
    return select(this.#start(step, part, line).lt(this.#extent(line)), bytes, 0);
  }

  #start({ row, column }: CopyStep, part: Tile<"R" | "C">, along: "R" | "C"): Value<I32> {
    return translate(part, { R: row, C: column }).origin(along) as Value<I32>;
  }

  #extent(along: "R" | "C"): Value<I32> {
    return along === "R" ? this.options.rows : this.options.columns;
  }
}
