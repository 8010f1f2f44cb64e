/**
 * @file Runs the single-lane part of the representation on the host, for tests: what a kernel stores, in order.
 */
import {
  type ElementValue,
  evaluateOperation,
  type HostValue,
  isEvaluable,
  lanesOf,
} from "../ir/evaluate.ts";
import type {
  AnyOperation,
  ArrayReference,
  Block,
  IrValue,
  KernelIr,
  Operand,
  RegisterVariable,
  Statement,
} from "../ir/nodes.ts";
import type { BuiltinName } from "../ir/operations.ts";
import { convertValue } from "../types/convert.ts";
import { i32 } from "../types/types.ts";

/** One store, with the position as hardware forms it: index plus offset, without wrapping. */
export interface Store {
  readonly array: string;
  readonly position: number;
  readonly value: HostValue;
}

/** What a launch gives the kernel. */
export interface Launch {
  readonly builtins: { readonly [Name in BuiltinName]?: number };
  readonly parameters: readonly ElementValue[];
  /** Sees each value as it is computed. */
  readonly observe?: (value: IrValue, computed: HostValue) => void;
}

export interface Outcome {
  readonly stores: readonly Store[];
  /** Operations executed, by name. */
  readonly counts: ReadonlyMap<string, number>;
}

type Jump = "break" | "continue" | "exit" | undefined;

/** Runs one lane of a kernel. Memory that nothing stored to holds numbers made from its position. */
export function interpret(kernel: KernelIr, launch: Launch): Outcome {
  const values = new Map<IrValue, HostValue>();
  const registers = new Map<RegisterVariable, HostValue[]>();
  const memory = new Map<string, ElementValue>();
  const stores: Store[] = [];
  const counts = new Map<string, number>();
  let steps = 0;
  block(kernel.body);
  return { stores, counts };

  function get(operand: Operand): HostValue {
    if (operand.kind === "value") {
      if (!values.has(operand)) throw new Error(`value ${operand.id} has not been computed`);
      return values.get(operand)!;
    }
    const { value, type } = operand;
    const held = type.element.class === "float" ? convertValue(value, type.element, type.element) : value;
    return type.lanes === 1 ? held : new Array<ElementValue>(type.lanes).fill(held);
  }

  function define(value: IrValue, computed: HostValue): void {
    values.set(value, computed);
    launch.observe?.(value, computed);
  }

  function block({ statements }: Block): Jump {
    for (const statement of statements) {
      const jump = run(statement);
      if (jump !== undefined) return jump;
    }
    return undefined;
  }

  function run(statement: Statement): Jump {
    if (++steps > 200_000) throw new Error("the program does not end");
    switch (statement.kind) {
      case "operation":
        operation(statement);
        return undefined;
      case "if":
        return block(get(statement.condition) === true ? statement.then : statement.otherwise);
      case "loop": {
        const [from, to, step] = [get(statement.from), get(statement.to), get(statement.step)] as number[];
        for (let counter = from!; counter < to!; counter += step!) {
          define(statement.counter, counter);
          const jump = block(statement.body);
          if (jump === "break") break;
          if (jump === "exit") return jump;
        }
        return undefined;
      }
      case "while":
        for (;;) {
          block(statement.condition);
          if (get(statement.test) !== true) return undefined;
          const jump = block(statement.body);
          if (jump === "break") return undefined;
          if (jump === "exit") return jump;
        }
      case "break":
      case "continue":
      case "exit":
        return statement.kind;
      default:
        throw new Error(`${statement.kind} has no single lane`);
    }
  }

  function operation(node: AnyOperation): void {
    counts.set(node.name, (counts.get(node.name) ?? 0) + 1);
    const result = compute(node);
    if (node.result !== undefined) define(node.result, result!);
  }

  function compute(node: AnyOperation): HostValue | undefined {
    switch (node.name) {
      case "builtin":
        return launch.builtins[node.attributes.builtin] ?? 0;
      case "parameter":
        return launch.parameters[node.attributes.parameter]!;
      case "bufferSize":
      case "bufferStride":
        return 64 + node.attributes.dimension;
      case "readRegister": {
        const { variable, offset } = node.registers[0]!;
        const held = registers.get(variable)?.[offset];
        if (held === undefined) throw new Error(`variable ${variable.name} is read before it is written`);
        return held;
      }
      case "writeRegister": {
        const { variable, offset } = node.registers[0]!;
        if (!registers.has(variable)) registers.set(variable, []);
        registers.get(variable)![offset] = get(node.operands[0]!);
        return undefined;
      }
      case "load":
        return load(node.attributes.array, position(node), node.result!.type.lanes);
      case "store": {
        const value = get(node.operands[1]!);
        const array = nameOf(node.attributes.array);
        stores.push({ array, position: position(node), value });
        for (const [lane, element] of lanesOf(value).entries())
          memory.set(`${array}[${position(node) + lane}]`, element);
        return undefined;
      }
      default: {
        if (!isEvaluable(node.name)) throw new Error(`${node.name} has no single lane`);
        const types = node.operands.map((operand) => operand.type);
        return evaluateOperation(
          node.name,
          node.operands.map(get),
          types,
          node.result!.type,
          node.attributes as never,
        );
      }
    }
  }

  function position(node: AnyOperation & { readonly name: "load" | "store" }): number {
    return Number(get(node.operands[0]!)) + node.attributes.offset;
  }

  function load(array: ArrayReference, start: number, lanes: number): HostValue {
    const elements = Array.from({ length: lanes }, (_, lane) => element(array, start + lane));
    return lanes === 1 ? elements[0]! : elements;
  }

  function element(array: ArrayReference, at: number): ElementValue {
    if (array.kind === "constant") return array.table.values[at]!;
    const stored = memory.get(`${nameOf(array)}[${at}]`);
    if (stored !== undefined) return stored;
    const type = array.kind === "buffer" ? array.parameter.element : array.array.element;
    return convertValue(((at * 7919) % 1009) - 500, i32, type);
  }
}

function nameOf(array: ArrayReference): string {
  return array.kind === "buffer"
    ? array.parameter.name
    : array.kind === "shared"
      ? array.array.name
      : array.table.name;
}
