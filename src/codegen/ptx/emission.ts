/**
 * @file The text of one kernel while it is being written: lines, registers, labels, what is already known.
 *
 * Two kinds of line: {@link Emission.compute} makes a value in a fresh register and may always be executed;
 * {@link Emission.effect} does something and obeys the guard of a predicated branch. Values that derive from others
 * (addresses, unpacked lanes) are remembered for the scope in which they were computed and those nested in it.
 */
import { CompileError, formatPosition, type SourcePosition } from "../../errors.ts";
import type {
  IrConstant,
  IrValue,
  KernelIr,
  Operand,
  RegisterRange,
  RegisterVariable,
  ValueType,
} from "../../ir/nodes.ts";
import { type ArgumentSlot, argumentSlots, visitStatements } from "../../ir/parameters.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { typedLiteral, wordLiterals } from "./literals.ts";
import { formOf, type RegisterClass, RegisterFile } from "./registers.ts";

/** Ids of the values that something reads. */
function usedValues(kernel: KernelIr): ReadonlySet<number> {
  const used = new Set<number>();
  const use = (...operands: readonly Operand[]): void => {
    for (const operand of operands) if (operand.kind === "value") used.add(operand.id);
  };
  visitStatements(kernel.body, (statement) => {
    if (statement.kind === "operation") use(...statement.operands);
    if (statement.kind === "if") use(statement.condition);
    if (statement.kind === "loop") use(statement.from, statement.to, statement.step);
    if (statement.kind === "while") use(statement.test);
  });
  return used;
}

/** PTX ISA versions as major*10 + minor. */
export type PtxVersion = number;

export class Emission {
  readonly kernel: KernelIr;
  readonly facts: TargetFacts;
  /** Compute capability as major*10 + minor; selects between equivalent instruction sequences. */
  readonly capability: number;
  readonly slots: readonly ArgumentSlot[];
  readonly registers: RegisterFile = new RegisterFile();
  /** Prefix of guarded lines, e.g. "@%p3 ", or empty. */
  guard = "";
  version: PtxVersion = 63;
  /** Bytes of the argument block that prints need. */
  printBytes = 0;
  /** Texts of prints and assertions, encoded as bytes, in order of first use. */
  readonly texts: Uint8Array[] = [];
  readonly #prologue: string[] = [];
  readonly #lines: string[] = [];
  readonly #values = new Map<number, readonly string[]>();
  readonly #variables = new Map<number, readonly string[]>();
  readonly #entry = new Map<string, string>();
  #scopes: Map<string, readonly string[]>[] = [new Map()];
  #labels = 0;
  #temporaries = 0;
  readonly #used: ReadonlySet<number>;

  constructor(kernel: KernelIr, facts: TargetFacts) {
    this.kernel = kernel;
    this.facts = facts;
    this.slots = argumentSlots(kernel);
    this.#used = usedValues(kernel);
    this.capability = Number(/^sm_(\d+)/.exec(facts.name)?.[1] ?? 0);
    for (const variable of kernel.variables) this.#declare(variable);
  }

  #declare(variable: RegisterVariable): void {
    const form = formOf(variable.type);
    const words = Array.from({ length: variable.count * form.words }, () =>
      this.registers.allocate(form.cls),
    );
    this.#variables.set(variable.id, words);
  }

  /** States the lowest PTX version that a line needs. */
  needs(version: PtxVersion): void {
    this.version = Math.max(this.version, version);
  }

  /** Emits `opcode register, operands…` into a new register and returns it; never guarded. */
  compute(cls: RegisterClass, opcode: string, ...operands: readonly (string | number)[]): string {
    const register = this.registers.allocate(cls);
    this.#lines.push(`${opcode} ${[register, ...operands].join(", ")};`);
    return register;
  }

  /** Emits a line that makes no single value but may always be executed. */
  raw(text: string): void {
    this.#lines.push(`${text};`);
  }

  /** Emits a line with effects, under the current guard. */
  effect(text: string): void {
    this.#lines.push(`${this.guard}${text};`);
  }

  /** Calls an external function of 64-bit arguments and a 32-bit result, which is dropped. */
  call(name: string, operands: readonly string[]): void {
    const places = operands.map((_, index) => `$c${index}`);
    this.#lines.push(
      "{",
      ...operands.flatMap((operand, index) => [
        `.param .b64 $c${index};`,
        `st.param.b64 [$c${index}], ${operand};`,
      ]),
      ".param .b32 $result;",
      `call ($result), ${name}, (${places.join(", ")});`,
      "}",
    );
  }

  newLabel(): string {
    this.#labels += 1;
    return `$L${this.#labels}`;
  }

  label(name: string): void {
    this.#lines.push(`${name}:`);
  }

  /** A value computed once at entry, before the body. */
  atEntry(key: string, cls: RegisterClass, lines: (register: string) => readonly string[]): string {
    const known = this.#entry.get(key);
    if (known !== undefined) return known;
    const register = this.registers.allocate(cls);
    this.#entry.set(key, register);
    this.#prologue.push(...lines(register).map((line) => `${line};`));
    return register;
  }

  /** Runs `make` unless an enclosing scope already has its result. */
  once(key: string, make: () => readonly string[]): readonly string[] {
    for (const scope of this.#scopes) {
      const known = scope.get(key);
      if (known !== undefined) return known;
    }
    const made = make();
    this.#scopes.at(-1)!.set(key, made);
    return made;
  }

  onceRegister(key: string, make: () => string): string {
    return this.once(key, () => [make()])[0]!;
  }

  /** Emits a nested block: what it computes is forgotten after it. */
  scope(body: () => void): void {
    this.#scopes.push(new Map());
    body();
    this.#scopes.pop();
  }

  /** A value that has no name in the kernel, for emitters that build on others. */
  temporary(type: ValueType, words: readonly string[]): IrValue {
    this.#temporaries += 1;
    const value: IrValue = { kind: "value", id: -this.#temporaries, type };
    this.define(value, words);
    return value;
  }

  /** Whether anything in the kernel reads a value. */
  uses(value: IrValue): boolean {
    return this.#used.has(value.id);
  }

  define(value: IrValue | undefined, words: readonly string[]): void {
    if (value !== undefined) this.#values.set(value.id, words);
  }

  #defined(value: IrValue): readonly string[] {
    const words = this.#values.get(value.id);
    if (words === undefined)
      throw new CompileError(`kernel ${this.kernel.name}: value ${value.id} is used before it is made`);
    return words;
  }

  /** Registers or untyped literals of an operand; bool constants become registers. */
  words(operand: Operand): readonly string[] {
    if (operand.kind === "value") return this.#defined(operand);
    if (operand.type.element.class === "bool") return this.#boolWords(operand);
    return wordLiterals(operand);
  }

  /** Registers, or literals in the notation of the operand's own type, for typed 32- and 64-bit instructions. */
  typedWords(operand: Operand): readonly string[] {
    if (
      operand.kind === "value" ||
      formOf(operand.type).lanesPerWord > 1 ||
      operand.type.element.bits === 16
    ) {
      return this.registerWords(operand);
    }
    if (operand.type.element.class === "bool") return this.#boolWords(operand);
    return Array.from({ length: operand.type.lanes }, () =>
      typedLiteral(operand.type.element, operand.value),
    );
  }

  /** Registers of an operand; constants are moved into registers first. */
  registerWords(operand: Operand): readonly string[] {
    if (operand.kind === "value") return this.#defined(operand);
    const { cls } = formOf(operand.type);
    return this.words(operand).map((word) => (cls === "pred" ? word : this.constantRegister(cls, word)));
  }

  /** First (or only) register or untyped literal of an operand. */
  word(operand: Operand): string {
    return this.words(operand)[0]!;
  }

  constantRegister(cls: Exclude<RegisterClass, "pred">, literal: string): string {
    return this.onceRegister(`constant:${cls}:${literal}`, () => this.compute(cls, `mov.${cls}`, literal));
  }

  #boolWords(constant: IrConstant): readonly string[] {
    const register = this.truth(constant.value === true);
    return Array.from({ length: constant.type.lanes }, () => register);
  }

  /** A predicate register that is always true or always false. */
  truth(value: boolean): string {
    return this.atEntry(`truth:${value}`, "pred", (p) => [`setp.${value ? "eq" : "ne"}.b32 ${p}, 0, 0`]);
  }

  /** All registers of a range of a variable. */
  range(range: RegisterRange): readonly string[] {
    const words = this.#variables.get(range.variable.id);
    if (words === undefined) {
      throw new CompileError(
        `kernel ${this.kernel.name}: register variable ${range.variable.name} is not declared`,
      );
    }
    const each = formOf(range.variable.type).words;
    return words.slice(range.offset * each, (range.offset + range.count) * each);
  }

  /** Place of an argument among the native ones. */
  slot(kind: ArgumentSlot["kind"], parameter: number, dimension?: number): number {
    const found = this.slots.findIndex(
      (slot) =>
        slot.kind === kind &&
        slot.parameter === parameter &&
        (!("dimension" in slot) || slot.dimension === dimension),
    );
    if (found < 0)
      throw new CompileError(`kernel ${this.kernel.name} has no ${kind} argument for parameter ${parameter}`);
    return found;
  }

  position(site: number): SourcePosition | undefined {
    return this.kernel.positions[site];
  }

  /** An error at the author's line. */
  error(message: string, site: number): CompileError {
    const position = this.position(site);
    return new CompileError(
      `kernel ${this.kernel.name}: ${message} ${formatPosition(position)}`,
      "",
      position === undefined ? [] : [position],
    );
  }

  /** Everything emitted so far: entry computations, then the body. */
  text(): readonly string[] {
    return [...this.#prologue, ...this.#lines];
  }
}
