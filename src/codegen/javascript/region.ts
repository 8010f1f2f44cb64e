/**
 * @file One region: a function that takes the given lanes one after another through a run of statements.
 *
 * Inside, values are constants and register variables `let`s of the loop over lanes; values from outside are fetched from
 * their slots at its top, and what outlives the region is put into slots where it is made (values) or where the lane
 * leaves (variables). Jumps out of the region leave a mark in the lane's state, which the subgroup's function reads.
 */
import type { IrValue, Operand, RegisterVariable, Statement } from "../../ir/nodes.ts";
import { visitStatements } from "../../ir/parameters.ts";
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { literal } from "./literals.ts";
import { type Bank, bankOf } from "./storage.ts";

/** Element of a register variable that a region touches. */
interface Touched {
  readonly variable: RegisterVariable;
  readonly element: number;
  written: boolean;
}

/** Reads an element of a type out of a slot's bank. */
export function fetched(element: ElementType, slot: number): string {
  const cell = `${bankOf(element)}[${slot} + lane]`;
  if (element.class === "bool") return `${cell} !== 0`;
  return element.name === "u32" ? `${cell} >>> 0` : cell;
}

/** Puts a text into a slot. */
export function kept(element: ElementType, slot: number, text: string): string {
  return `${bankOf(element)}[${slot} + lane] = ${element.class === "bool" ? `${text} ? 1 : 0` : text};`;
}

/** Text of one region under construction. */
export class Region {
  readonly checks: boolean;
  private readonly lines: string[] = [];
  private readonly prelude = new Map<string, string>();
  private readonly imports = new Map<string, string>();
  private readonly defined = new Set<number>();
  private readonly touched = new Map<string, Touched>();
  private temporaries = 0;
  private labels = 0;

  /** @param loop number of the subgroup's loop around the region, for jumps out of it */
  constructor(
    readonly emission: Emission,
    readonly loop: number | undefined,
  ) {
    this.checks = emission.mode.checks;
  }

  /** Registers the variables that statements touch, so that a lane fetches and leaves them. */
  touch(statements: readonly Statement[]): void {
    visitStatements({ statements }, (statement) => {
      if (statement.kind !== "operation") return;
      for (const { variable, offset, access } of statement.registers) {
        if (this.isChecked(variable)) continue;
        const key = `${variable.id}_${offset}`;
        const known = this.touched.get(key);
        const written = access !== "read";
        if (known === undefined) this.touched.set(key, { variable, element: offset, written });
        else known.written ||= written;
      }
    });
  }

  /** Whether accesses to a variable go to its slots each time, with a check. */
  isChecked(variable: RegisterVariable): boolean {
    return this.emission.unassigned.has(variable) || this.emission.flying.has(variable);
  }

  line(text: string): void {
    this.lines.push(text);
  }

  /** A constant of the whole region, once. */
  constant(name: string, text: string): string {
    this.prelude.set(name, text);
    return name;
  }

  bank(bank: Bank): string {
    return this.constant(bank, `W.${bank}`);
  }

  temporary(text: string): string {
    const name = `t${this.temporaries++}`;
    this.line(`const ${name} = ${text};`);
    return name;
  }

  label(): string {
    return `L${this.labels++}`;
  }

  /** Text of one lane of an operand; scalars serve every lane. */
  operand(operand: Operand, lane = 0): string {
    if (operand.kind === "constant") return literal(operand.type.element, operand.value);
    const part = operand.type.lanes === 1 ? 0 : lane;
    if (!this.defined.has(operand.id)) this.fetch(operand, part);
    return valueName(operand, part);
  }

  /** All lanes of an operand. */
  lanes(operand: Operand): readonly string[] {
    return Array.from({ length: operand.type.lanes }, (_, lane) => this.operand(operand, lane));
  }

  private fetch(value: IrValue, lane: number): void {
    const { element } = value.type;
    this.bank(bankOf(element));
    this.imports.set(valueName(value, lane), fetched(element, this.emission.storage.valueSlot(value, lane)));
  }

  /** Defines a value by its lanes' texts. */
  define(value: IrValue, texts: readonly string[]): void {
    this.defined.add(value.id);
    texts.forEach((text, lane) => {
      this.line(`const ${valueName(value, lane)} = ${text};`);
    });
    this.keep(value);
  }

  /** A value that the region's text declares itself, as a loop does its counter. */
  declare(value: IrValue): string {
    this.defined.add(value.id);
    return valueName(value, 0);
  }

  private keep(value: IrValue): void {
    if (!this.emission.structure.isKept(value.id)) return;
    const { element } = value.type;
    this.bank(bankOf(element));
    for (let lane = 0; lane < value.type.lanes; lane++) {
      this.line(kept(element, this.emission.storage.valueSlot(value, lane), valueName(value, lane)));
    }
  }

  /** Names a variable's lane within the region. */
  variable(variable: RegisterVariable, element: number, lane: number): string {
    return `x${variable.id}_${element}_${lane}`;
  }

  /** Text that a lane runs before it leaves the region. */
  private leave(): string {
    const stores: string[] = [];
    for (const { variable, element, written } of this.touched.values()) {
      if (!written) continue;
      for (let lane = 0; lane < variable.type.lanes; lane++) {
        const slot = this.emission.storage.variableSlot(variable, element, lane);
        stores.push(kept(variable.type.element, slot, this.variable(variable, element, lane)));
      }
    }
    return stores.join(" ");
  }

  /** Leaves the region for good, for another turn or out of the subgroup's loop. */
  jump(kind: "break" | "continue" | "exit", site: number): void {
    if (kind === "exit") this.line(`${this.leave()} exitLane(W, lane, ${site}); continue lanes;`);
    else {
      const code = 2 * this.loop! + (kind === "break" ? 0 : 1);
      this.line(`${this.leave()} W.state[lane] = ${code}; W.left[lane] = ${site}; continue lanes;`);
    }
  }

  /** The finished function. `filter` names a condition: the function then keeps the lanes for which it holds. */
  finish(name: string, filter?: { readonly text: string; readonly site: number }): string {
    const head: string[] = [];
    for (const { variable, element } of this.touched.values()) {
      const { element: type, lanes } = variable.type;
      this.bank(bankOf(type));
      for (let lane = 0; lane < lanes; lane++) {
        const slot = this.emission.storage.variableSlot(variable, element, lane);
        head.push(`let ${this.variable(variable, element, lane)} = ${fetched(type, slot)};`);
      }
    }
    for (const [value, text] of this.imports) head.push(`const ${value} = ${text};`);
    const tail =
      filter === undefined
        ? this.leave()
        : `if (${filter.text}) list[kept++] = lane; else W.left[lane] = ${filter.site};`;
    const prelude = [...this.prelude].map(([constant, text]) => `const ${constant} = ${text};`);
    return [
      `function ${name}(W, m) {`,
      ...prelude,
      "const list = m.lanes, count = m.count, first = W.first;",
      ...(filter === undefined ? [] : ["let kept = 0;"]),
      "lanes: for (let n = 0; n < count; n++) {",
      "const lane = list[n];",
      ...head,
      ...this.lines,
      tail,
      "}",
      ...(filter === undefined ? [] : ["m.count = kept;"]),
      ...(this.emission.mode.counters ? ["closeRegion(W);"] : []),
      "}",
    ].join("\n");
  }
}

/** The name of a value's lane. */
export function valueName(value: IrValue, lane: number): string {
  return value.type.lanes === 1 ? `v${value.id}` : `v${value.id}_${lane}`;
}
