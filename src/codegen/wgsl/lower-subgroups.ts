/**
 * @file Exchanges between the lanes of a subgroup through workgroup memory, for adapters whose subgroups have no certain
 * width, or which have none: a subgroup is then as many consecutive threads as the facts say.
 *
 * Each exchange takes two block barriers, so the whole block must get there together.
 */

import type { SharedArray } from "../../ir/declarations.ts";
import type {
  AnyOperation,
  IrValue,
  KernelIr,
  Operand,
  OperationNode,
  Statement,
  ValueType,
} from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import type { Attributes, OperationName } from "../../ir/operations.ts";
import { bool, type ElementType, i32, u8, u16, u32 } from "../../types/types.ts";
import { constantOf, mapInnerBlocks, Sequence, Supply } from "./rewriting.ts";

const replaced: ReadonlySet<OperationName> = new Set<OperationName>([
  "shuffle",
  "vote",
  "ballot",
  "subgroupReduce",
  "electOne",
]);

const [flag, number, word] = [scalar(bool), scalar(i32), scalar(u32)];

/** The kernel without subgroup operations; the same kernel if it has none. */
export function lowerSubgroups(kernel: KernelIr): KernelIr {
  const lowering = new Lowering(kernel);
  const body = { statements: lowering.block(kernel.body.statements) };
  return lowering.used ? lowering.finish(body) : kernel;
}

type Folding = Attributes["subgroupReduce"]["operation"];

class Lowering {
  used = false;
  readonly #supply: Supply;
  readonly #exchange: SharedArray;
  readonly #threads: number;

  constructor(private readonly kernel: KernelIr) {
    this.#supply = new Supply(kernel);
    this.#threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    this.#exchange = {
      id: 1 + Math.max(-1, ...kernel.shared.map(({ id }) => id)),
      name: "exchange",
      element: u32,
      length: this.#threads,
      byteOffset: Math.ceil(kernel.sharedBytes / 16) * 16,
      purpose: "data",
    };
  }

  finish(body: KernelIr["body"]): KernelIr {
    const { kernel } = this;
    return {
      ...kernel,
      body,
      shared: [...kernel.shared, this.#exchange],
      sharedBytes: this.#exchange.byteOffset + 4 * this.#threads,
      variables: [...kernel.variables, ...this.#supply.variables],
      valueCount: this.#supply.valueCount,
    };
  }

  block(statements: readonly Statement[]): readonly Statement[] {
    return statements.flatMap((statement) => {
      if (statement.kind === "operation" && replaced.has(statement.name)) return this.#operation(statement);
      return [mapInnerBlocks(statement, (inner) => ({ statements: this.block(inner.statements) }))];
    });
  }

  #operation(node: AnyOperation): readonly Statement[] {
    this.used = true;
    const steps = new Sequence(this.#supply, node.site);
    switch (node.name) {
      case "shuffle":
        this.#shuffle(steps, node);
        break;
      case "subgroupReduce":
        this.#reduce(steps, node.operands[0]!, node.attributes.operation, node.result!);
        break;
      case "vote": {
        const own = this.#asWord(steps, node.operands[0]!);
        const total = this.#supply.value(word);
        this.#reduce(steps, own, node.attributes.mode === "any" ? "or" : "and", total);
        steps.effect("notEqual", [total, constantOf(word, 0)], {}, node.result);
        break;
      }
      case "ballot": {
        const bit = steps.value("shiftLeft", word, [constantOf(word, 1), this.#lane(steps)], {});
        const own = steps.value("select", word, [node.operands[0]!, bit, constantOf(word, 0)], {});
        this.#reduce(steps, own, "or", node.result!);
        break;
      }
      case "electOne":
        steps.effect("equal", [this.#lane(steps), constantOf(number, 0)], {}, node.result);
        break;
      default:
        steps.statements.push(node);
    }
    return steps.statements;
  }

  #lane(steps: Sequence): IrValue {
    return steps.value("builtin", number, [], { builtin: "lane" });
  }

  /** Number of the subgroup's first thread. */
  #first(steps: Sequence): IrValue {
    const subgroup = steps.value("builtin", number, [], { builtin: "subgroupIndex" });
    return steps.value("mul", number, [subgroup, constantOf(number, this.kernel.subgroupSize)], {});
  }

  #shuffle(steps: Sequence, node: OperationNode<"shuffle">): void {
    const { mode, width } = node.attributes;
    const [value, given] = node.operands as [Operand, Operand];
    const by = given.type.element.name === "i32" ? given : steps.value("convert", number, [given], {});
    const lane = this.#lane(steps);
    const first = this.#first(steps);
    const own = steps.value("add", number, [first, lane], {});
    this.#publish(steps, own, this.#asWord(steps, value));
    const within = steps.value("and", number, [lane, constantOf(number, width - 1)], {});
    const segment = steps.value("sub", number, [own, within], {});
    const source = this.#source(steps, mode, within, by);
    const least = steps.value("lessEqual", flag, [constantOf(number, 0), source], {});
    const most = steps.value("less", flag, [source, constantOf(number, width)], {});
    const inSegment = steps.value("and", flag, [least, most], {});
    const thread = steps.value("add", number, [segment, source], {});
    const exists = steps.value("less", flag, [thread, constantOf(number, this.#threads)], {});
    const valid = steps.value("and", flag, [inSegment, exists], {});
    const place = steps.value("select", number, [valid, thread, own], {});
    const taken = this.#take(steps, place);
    steps.effect("blockBarrier", [], {});
    this.#fromWord(steps, taken, node.result!);
  }

  #source(steps: Sequence, mode: Attributes["shuffle"]["mode"], within: IrValue, by: Operand): Operand {
    switch (mode) {
      case "index":
        return by;
      case "up":
        return steps.value("sub", number, [within, by], {});
      case "down":
        return steps.value("add", number, [within, by], {});
      case "xor":
        return steps.value("xor", number, [within, by], {});
      default:
        return mode satisfies never;
    }
  }

  #publish(steps: Sequence, place: Operand, value: Operand): void {
    steps.effect("store", [place, value], { ...this.#access(), cache: "default" });
    steps.effect("blockBarrier", [], {});
  }

  #take(steps: Sequence, place: Operand, offset = 0): IrValue {
    return steps.value("load", word, [place], { ...this.#access(), offset, cache: "default" });
  }

  #access(): {
    readonly array: { readonly kind: "shared"; readonly array: SharedArray };
    readonly offset: number;
  } {
    return { array: { kind: "shared", array: this.#exchange }, offset: 0 };
  }

  /** Every lane adds up what the lanes of its subgroup have published, in their order. */
  #reduce(steps: Sequence, value: Operand, operation: Folding, result: IrValue): void {
    const { type } = value;
    const first = this.#first(steps);
    const own = steps.value("add", number, [first, this.#lane(steps)], {});
    this.#publish(steps, own, this.#asWord(steps, value));
    const total = this.#supply.variable("total", type);
    steps.write(total, this.#decoded(steps, this.#take(steps, first), type));
    const rest = steps.value("sub", number, [constantOf(number, this.#threads), first], {});
    const lanes = steps.value("min", number, [rest, constantOf(number, this.kernel.subgroupSize)], {});
    const counter = this.#supply.value(number);
    const body = new Sequence(this.#supply, steps.site);
    const place = body.value("add", number, [first, counter], {});
    const other = this.#decoded(body, this.#take(body, place), type);
    body.write(total, body.value(operation, type, [body.read(total), other], {}));
    steps.statements.push({
      kind: "loop",
      counter,
      from: constantOf(number, 1),
      to: lanes,
      step: constantOf(number, 1),
      body: { statements: body.statements },
      site: steps.site,
    });
    steps.effect("blockBarrier", [], {});
    steps.read(total, result);
  }

  #decoded(steps: Sequence, bits: IrValue, type: ValueType): IrValue {
    if (type.element.name === "u32") return bits;
    const result = this.#supply.value(type);
    this.#fromWord(steps, bits, result);
    return result;
  }

  #asWord(steps: Sequence, value: Operand): Operand {
    const { element } = value.type;
    if (element.name === "u32") return value;
    if (element.class === "bool") {
      return steps.value("select", word, [value, constantOf(word, 1), constantOf(word, 0)], {});
    }
    if (element.name === "index") return steps.value("convert", word, [value], {});
    const bits = bitsType(element);
    if (bits === undefined) return steps.value("bitcast", word, [value], {});
    const narrow = steps.value("bitcast", scalar(bits), [value], {});
    return steps.value("convert", word, [narrow], {});
  }

  #fromWord(steps: Sequence, bits: IrValue, result: IrValue): void {
    const { element } = result.type;
    if (element.class === "bool") {
      steps.effect("notEqual", [bits, constantOf(word, 0)], {}, result);
      return;
    }
    if (element.name === "u32" || element.name === "index") {
      steps.effect("convert", [bits], {}, result);
      return;
    }
    const narrow = bitsType(element);
    const source = narrow === undefined ? bits : steps.value("convert", scalar(narrow), [bits], {});
    steps.effect("bitcast", [source], {}, result);
  }
}

/** The unsigned type with a narrow type's bits. */
function bitsType(element: ElementType): ElementType | undefined {
  return element.bits === 8 ? u8 : element.bits === 16 ? u16 : undefined;
}
