/**
 * @file Addresses as base plus constant: constants inside an index move to the access's `offset`, where they cost
 * nothing, and what remains is written as one canonical sum, so that accesses which differ by a constant share it.
 *
 * An index is a sum of *terms* and a constant. Constants are peeled out of sums and of sums times constants; a part
 * without constants stays the value it is, so nothing is computed again that was computed already. What replaces a value
 * is computed where that value was, and sums are flattened within one block only: no work moves into a loop.
 *
 * **When this is allowed.** The offset is added without wrapping, to an index that was computed with wrapping.
 * - `index` does not wrap.
 * - i32: the sum left behind is congruent to (index - constant) modulo 2^32, hence equal to it when that lies within the
 *   type. Where the access is a valid one, the whole position is at least 0, so for constants above 0 this always holds;
 *   otherwise ranges must prove it.
 * - u32: ranges must prove it.
 * - Under a conversion to `index`, ranges must prove it for both signs.
 */
import type {
  AnyOperation,
  Block,
  IrConstant,
  IrValue,
  KernelIr,
  Operand,
  Statement,
  ValueType,
} from "../ir/nodes.ts";
import { innerBlocks } from "../ir/parameters.ts";
import type { TargetFacts } from "../target/facts.ts";
import { type AccessSlot, accessSlots } from "./accesses.ts";
import { analyseRanges, contains, type Ranges, shiftRange, wholeRange } from "./ranges.ts";
import { constantOf, mapBlocks, operation, ValueSupply, withBody, withStatements } from "./rewrite.ts";

export function splitAddresses(kernel: KernelIr, facts: TargetFacts): KernelIr {
  const plan = new Plan(kernel, facts);
  return withBody(kernel, rewrite(kernel.body, plan), plan.valueCount);
}

function rewrite(block: Block, plan: Plan): Block {
  const statements: Statement[] = [];
  for (const statement of block.statements) {
    if (statement.kind !== "operation") {
      statements.push(mapBlocks(statement, (inner) => rewrite(inner, plan)));
      continue;
    }
    statements.push(plan.accesses.get(statement) ?? statement);
    for (const added of plan.additions.get(statement) ?? []) statements.push(added);
  }
  return withStatements(block, statements);
}

/** Further away than any addressing mode reaches on its own. */
const farthest = 2 ** 24;
/** Sums of more terms stay what they are. */
const mostTerms = 16;

/** A part of a sum: a value that is there already, or what is left of one (`of`) without its constant. */
type Part =
  | { readonly kind: "value"; readonly of: IrValue }
  | { readonly kind: "sum"; readonly of: IrValue }
  | { readonly kind: "product"; readonly of: IrValue; readonly base: IrValue; readonly factor: IrConstant }
  | { readonly kind: "widened"; readonly of: IrValue; readonly base: IrValue };

interface Term {
  readonly sign: 1 | -1;
  readonly part: Part;
}

/** terms + constant. */
interface Peeled {
  readonly terms: readonly Term[];
  readonly constant: number;
}

const addressTypes: ReadonlySet<string> = new Set(["i32", "u32", "index"]);

/** A constant of a 32-bit sum, modulo 2^32, as the signed number of least magnitude. */
function residue(constant: number, type: ValueType): number {
  if (type.element.name === "index") return constant;
  return constant - Math.round(constant / 2 ** 32) * 2 ** 32;
}

/** Which accesses change, and which operations come in after which. */
class Plan {
  readonly accesses = new Map<AnyOperation, AnyOperation>();
  readonly additions = new Map<AnyOperation, Statement[]>();
  private readonly supply: ValueSupply;
  private readonly ranges: Ranges;
  private readonly definitions = new Map<IrValue, AnyOperation>();
  private readonly blocks = new Map<IrValue, Block>();
  /** Position of each value's definition in the program. */
  private readonly order = new Map<IrValue, number>();
  private readonly peeled = new Map<IrValue, Peeled>();
  private readonly sums = new Map<IrValue, Operand>();
  private readonly parts = new Map<Part, Operand>();

  constructor(kernel: KernelIr, facts: TargetFacts) {
    this.supply = new ValueSupply(kernel);
    this.ranges = analyseRanges(kernel, facts);
    this.block(kernel.body);
  }

  get valueCount(): number {
    return this.supply.count;
  }

  private block(block: Block): void {
    for (const statement of block.statements) {
      if (statement.kind === "operation") {
        if (statement.result !== undefined) {
          this.definitions.set(statement.result, statement);
          this.place(statement.result, block);
        }
        this.operation(statement);
      } else if (statement.kind === "loop") {
        this.place(statement.counter, statement.body);
      }
      for (const inner of innerBlocks(statement)) this.block(inner);
    }
  }

  private place(value: IrValue, block: Block): void {
    this.order.set(value, this.order.size);
    this.blocks.set(value, block);
  }

  private operation(node: AnyOperation): void {
    const changed = accessSlots(node).reduce((current, slot) => this.access(current, slot), node);
    if (changed !== node) this.accesses.set(node, changed);
  }

  private access(node: AnyOperation, slot: AccessSlot): AnyOperation {
    const position = node.operands[slot.operand]!;
    const { constant } = this.peel(position);
    const offset = slot.offset + constant;
    if (constant === 0 || Math.abs(offset) > farthest || !this.isMovable(position, constant, slot))
      return node;
    const base = position.kind === "constant" ? constantOf(position.type, 0) : this.sum(position);
    return slot.with(node, base, offset);
  }

  /** Whether index - constant lies within the index's type whenever the access is a valid one. */
  private isMovable(position: Operand, constant: number, { offset }: AccessSlot): boolean {
    if (position.kind === "constant" || position.type.element.name === "index") return true;
    const whole = wholeRange(position.type)!;
    if (contains(whole, shiftRange(this.ranges(position)!, -constant))) return true;
    // A valid access has position + offset ≥ 0, and from there to the least i32 there is room.
    return position.type.element.name === "i32" && constant > 0 && -offset - constant >= whole.low;
  }

  // Peeling -----------------------------------------------------------------------------------------------------------

  private peel(operand: Operand): Peeled {
    if (operand.kind === "constant") return { terms: [], constant: Number(operand.value) };
    const known = this.peeled.get(operand);
    if (known !== undefined) return known;
    const peeled = this.peelValue(operand) ?? {
      terms: [{ sign: 1, part: { kind: "value", of: operand } }],
      constant: 0,
    };
    this.peeled.set(operand, peeled);
    return peeled;
  }

  private peelValue(value: IrValue): Peeled | undefined {
    const definition = this.definitions.get(value);
    if (definition === undefined || value.type.lanes !== 1 || !addressTypes.has(value.type.element.name))
      return undefined;
    const parts = this.peelOperation(definition, value);
    if (parts === undefined || !Number.isSafeInteger(parts.constant) || parts.terms.length > mostTerms)
      return undefined;
    const constant = residue(parts.constant, value.type);
    return constant === 0 ? undefined : { terms: parts.terms, constant };
  }

  private peelOperation(definition: AnyOperation, value: IrValue): Peeled | undefined {
    const [a, b, c] = definition.operands;
    switch (definition.name) {
      case "add":
        return sum(this.summand(a!, value), this.summand(b!, value), 1);
      case "sub":
        return sum(this.summand(a!, value), this.summand(b!, value), -1);
      case "mul":
        return this.times(a!, b!, value);
      case "fma": {
        const product = this.times(a!, b!, value);
        return product && sum(product, this.summand(c!, value), 1);
      }
      case "shiftLeft":
        return this.shifted(a!, b!, value);
      case "convert":
        return this.widened(a!, value);
      default:
        return undefined;
    }
  }

  /** A summand of `whole`; what another block has summed up stays one term. */
  private summand(operand: Operand, whole: IrValue): Peeled {
    const peeled = this.peel(operand);
    if (operand.kind === "constant" || peeled.terms.length < 2) return peeled;
    if (this.blocks.get(operand) === this.blocks.get(whole)) return peeled;
    return { terms: [{ sign: 1, part: { kind: "sum", of: operand } }], constant: peeled.constant };
  }

  private times(a: Operand, b: Operand, value: IrValue): Peeled | undefined {
    const [base, factor] = a.kind === "constant" ? [b, a] : [a, b];
    if (factor.kind !== "constant" || base.kind === "constant") return undefined;
    const { terms, constant } = this.peel(base);
    const product = constant * Number(factor.value);
    if (terms.length === 0) return { terms, constant: product };
    return { terms: [{ sign: 1, part: { kind: "product", of: value, base, factor } }], constant: product };
  }

  private shifted(base: Operand, count: Operand, value: IrValue): Peeled | undefined {
    // 2^31 is no i32; whoever shifts so far addresses nothing.
    if (count.kind !== "constant" || !(Number(count.value) >= 0 && Number(count.value) < 31))
      return undefined;
    return this.times(base, constantOf(value.type, 2 ** Number(count.value)), value);
  }

  /** A 32-bit sum converted to `index`, where that is the sum of the converted parts. */
  private widened(source: Operand, value: IrValue): Peeled | undefined {
    const whole = wholeRange(source.type);
    if (value.type.element.name !== "index" || whole === undefined) return undefined;
    const { terms, constant } = this.peel(source);
    if (constant === 0 || !contains(whole, shiftRange(this.ranges(source)!, -constant))) return undefined;
    if (terms.length === 0 || source.kind === "constant") return { terms, constant };
    return { terms: [{ sign: 1, part: { kind: "widened", of: value, base: source } }], constant };
  }

  // Writing -----------------------------------------------------------------------------------------------------------

  /** What is left of a value without its constant, computed right after the value. */
  private sum(value: IrValue): Operand {
    const known = this.sums.get(value);
    if (known !== undefined) return known;
    const terms = [...this.peel(value).terms].sort(
      (a, b) => this.order.get(a.part.of)! - this.order.get(b.part.of)!,
    );
    let total: Operand | undefined;
    for (const { part } of terms.filter(({ sign }) => sign === 1)) {
      const operand = this.part(part);
      total = total === undefined ? operand : this.emit("add", [total, operand], value);
    }
    for (const { part } of terms.filter(({ sign }) => sign === -1)) {
      total = this.emit("sub", [total ?? constantOf(value.type, 0), this.part(part)], value);
    }
    const result = total ?? constantOf(value.type, 0);
    this.sums.set(value, result);
    return result;
  }

  private part(part: Part): Operand {
    if (part.kind === "value") return part.of;
    const known = this.parts.get(part);
    if (known !== undefined) return known;
    const written = this.writePart(part);
    this.parts.set(part, written);
    return written;
  }

  private writePart(part: Exclude<Part, { readonly kind: "value" }>): Operand {
    switch (part.kind) {
      case "sum":
        return this.sum(part.of);
      case "product":
        return this.emit("mul", [this.sum(part.base), part.factor], part.of);
      case "widened":
        return this.emit("convert", [this.sum(part.base)], part.of);
      default:
        return part satisfies never;
    }
  }

  /** A new operation after the one that defines `after`, and after those that were added there before. */
  private emit(
    name: "add" | "sub" | "mul" | "convert",
    operands: readonly Operand[],
    after: IrValue,
  ): IrValue {
    const definition = this.definitions.get(after)!;
    const result = this.supply.value(after.type);
    const added = operation(name, result, operands, {}, definition.site);
    const already = this.additions.get(definition);
    if (already === undefined) this.additions.set(definition, [added]);
    else already.push(added);
    return result;
  }
}

function sum(a: Peeled, b: Peeled, sign: 1 | -1): Peeled {
  const others =
    sign === 1 ? b.terms : b.terms.map((term): Term => ({ sign: term.sign === 1 ? -1 : 1, part: term.part }));
  return { terms: [...a.terms, ...others], constant: a.constant + sign * b.constant };
}
