/**
 * @file The asynchronous copy engine (cp.async): 4, 8 or 16 bytes at a time from global to shared memory past the
 * registers, so that several K steps can be on their way at once. What lies outside the matrix becomes zero by the size that
 * is read.
 *
 * Elements keep their type and their order along a line. A shared tile that lies the other way is written element by
 * element, where elements are as large as a copy may be small.
 */
import {
  type Bool,
  byteSize,
  constant,
  copyAsync,
  type I32,
  type IndexOperand,
  i32,
  select,
  toIndex,
  type Value,
  when,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { plus, type Tile, tile, translate } from "../../tile/index.ts";
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

type Run = Tile<"R" | "C">;

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
    when(active, () => this.#copy(step, parts, (part) => this.#validBytes(step, part)));
  }

  issueInner(step: CopyStep, part: number, parts: number): void {
    const { parts: all, active } = this.#share;
    const own = all.slice(
      Math.floor((part * all.length) / parts),
      Math.floor(((part + 1) * all.length) / parts),
    );
    when(own.length > 0 && active, () => this.#copy(step, own, (run) => this.#allOrNothing(step, run)));
  }

  arrive(): void {}

  #copy(step: CopyStep, parts: readonly Run[], validBytes: (part: Run) => Value<I32>): void {
    const { source, width } = this.options;
    const { memory, layout, origin, leading } = step.target;
    let from: IndexOperand = 0;
    parts.forEach((part, i) => {
      from = i === 0 ? this.#position(step, part) : this.#onwards(step, from, parts[i - 1], part);
      const to = layout.position!({ origin, leading }, part);
      const valid = { validBytes: validBytes(part) };
      copyAsync(memory as never, to, source as never, from, width, valid);
    });
  }

  #position({ row, column }: CopyStep, part: Run): IndexOperand {
    const { layout, leading, extras } = this.options;
    const run = translate(part, { R: row, C: column });
    return layout.position!({ origin: 0, leading, extras }, this.#within(run));
  }

  /**
   * A run as a layout is asked for its position. One that works positions out may read arrays of its own to do so, and is
   * asked for the last row and column in place of those beyond; of such runs nothing is copied.
   */
  #within(run: Run): Run {
    const { layout, rows, columns } = this.options;
    if (factsOf(layout).movement === "box") return run;
    const [row, column] = [run.origin("R") as Value<I32>, run.origin("C") as Value<I32>];
    const base = tile({ R: run.size.R, C: run.size.C });
    return translate(base, { R: row.min(rows.sub(1)), C: column.min(columns.sub(1)) });
  }

  /**
   * Position of a run from that of the one before. With lines at one distance that is one addition, and one number that
   * stays in a register however many runs there are.
   */
  #onwards(step: CopyStep, position: IndexOperand, last: Run, part: Run): IndexOperand {
    const { layout, leading } = this.options;
    if (factsOf(layout).movement !== "box") return this.#position(step, part);
    const [line, along] = layout.major === "row" ? (["R", "C"] as const) : (["C", "R"] as const);
    const lines = part.offset[line] - last.offset[line];
    const within = part.offset[along] - last.offset[along];
    const moved = toIndex(position).add(leading.mul(lines));
    return within === 0 ? moved : moved.add(within);
  }

  /**
   * Bytes of a run inside lines that end within the matrix: all where it begins inside. A run over the edge of M or N
   * reads on into the rest of its line, which reaches only rows or columns of D that do not exist.
   */
  #allOrNothing(step: CopyStep, part: Run): Value<I32> {
    if (factsOf(this.options.layout).movement !== "box") return this.#validBytes(step, part);
    const other = this.options.depth === "R" ? "C" : "R";
    return select(this.#begins(step, part, other), constant(i32, this.#bytes), 0);
  }

  /** Bytes of a run anywhere: what of it lies inside. */
  #validBytes(step: CopyStep, part: Run): Value<I32> {
    const { layout, width, type } = this.options;
    const [line, along] = layout.major === "row" ? (["R", "C"] as const) : (["C", "R"] as const);
    const start = translate(part, { R: step.row, C: step.column }).origin(along) as Value<I32>;
    const bytes = this.#extent(along).sub(start).max(0).min(width).mul(byteSize(type));
    return select(this.#begins(step, part, line), bytes, 0);
  }

  /** Whether a run begins inside; what differs among a thread's runs stands on the side that all threads share. */
  #begins({ row, column }: CopyStep, part: Run, along: "R" | "C"): Value<Bool> {
    const base = plus(along === "R" ? row : column, part.base[along]) as Value<I32>;
    return base.lt(this.#extent(along).sub(part.offset[along]));
  }

  #extent(along: "R" | "C"): Value<I32> {
    return along === "R" ? this.options.rows : this.options.columns;
  }
}
