/**
 * @file The text of one kernel while it is being written: lines, names, what values are, what helpers are needed.
 *
 * A value is a list of *atoms*, one for each lane or each packed word: names, components of names, or literals, which
 * may be repeated at no cost.
 */
import { CompileError } from "../../errors.ts";
import { compileErrorAt } from "../../ir/error-at.ts";
import type { IrValue, KernelIr, Operand, RegisterVariable, ValueType } from "../../ir/nodes.ts";
import { operations } from "../../ir/operations.ts";
import { type ArgumentSlot, argumentSlots, visitStatements } from "../../ir/parameters.ts";
import type { WebGpuFacts, WgslFeatures } from "../../target/webgpu.ts";
import type { ElementType } from "../../types/types.ts";
import { type HelperName, helpers } from "./helpers.ts";
import { hex, literal, narrowBits } from "./literals.ts";
import { StoragePlan } from "./storage.ts";
import { components, isNarrow, isNativeHalf, laneType, vectorOf, wordCount } from "./types.ts";

/** The forms of a value; at least one is there. */
export interface Held {
  readonly lanes?: readonly string[];
  readonly words?: readonly string[];
}

/** Values that the hardware provides, as parameters of the entry point. */
export type EntryBuiltin =
  | "local_invocation_index"
  | "workgroup_id"
  | "subgroup_invocation_id"
  | "subgroup_id";

/** Things that a kernel's text asks for at its top. */
export type Extension =
  | "f16"
  | "subgroups"
  | "subgroup_size_control"
  | "chromium_experimental_subgroup_matrix";

/** How a register variable is declared: a subgroup matrix, or plain variables of one element. */
export type VariableForm = { readonly kind: "plain" } | { readonly kind: "matrix"; readonly type: string };

function usesSubgroups(kernel: KernelIr): boolean {
  let found = false;
  visitStatements(kernel.body, (statement) => {
    found ||= statement.kind === "operation" && operations[statement.name].convergence === "subgroup";
  });
  return found;
}

export class Emission {
  readonly kernel: KernelIr;
  readonly facts: WebGpuFacts;
  readonly features: WgslFeatures;
  readonly slots: readonly ArgumentSlot[];
  readonly storage: StoragePlan;
  /** Whether lanes exchange values, so that the order of threads must agree with the hardware's subgroups. */
  readonly usesSubgroups: boolean;
  readonly extensions: Set<Extension> = new Set();
  readonly builtins: Set<EntryBuiltin> = new Set();
  readonly usedHelpers: Set<HelperName> = new Set();
  readonly #lines: string[] = [];
  readonly #prologue: string[] = [];
  readonly #atEntry: Map<string, string> = new Map();
  readonly #values: Map<number, Held> = new Map();
  readonly #scopes: Map<string, readonly string[]>[] = [new Map()];
  readonly #matrices: ReadonlyMap<number, string>;
  readonly #usedVariables: Map<number, RegisterVariable> = new Map();
  #depth = 1;
  #names = 0;

  constructor(
    kernel: KernelIr,
    facts: WebGpuFacts,
    merged: readonly (readonly number[])[],
    matrices: ReadonlyMap<number, string>,
  ) {
    this.kernel = kernel;
    this.facts = facts;
    this.features = facts.wgsl;
    this.slots = argumentSlots(kernel);
    this.storage = new StoragePlan(kernel, facts.wgsl, this.slots, merged);
    this.usesSubgroups = usesSubgroups(kernel);
    this.#matrices = matrices;
  }

  // Text ------------------------------------------------------------------------------------------------------------

  line(text: string): void {
    this.#lines.push("  ".repeat(this.#depth) + text);
  }

  /** Lines inside braces, opened by `head` unless the line before has done so. What is computed there is forgotten after it. */
  nested(head: string, body: () => void, tail = "}"): void {
    if (head !== "") this.line(head);
    this.#depth += 1;
    this.#scopes.push(new Map());
    body();
    this.#scopes.pop();
    this.#depth -= 1;
    this.line(tail);
  }

  name(prefix = "v"): string {
    this.#names += 1;
    return `${prefix}${this.#names}`;
  }

  /** Computes an expression once and gives its name. */
  let(expression: string): string {
    const name = this.name();
    this.line(`let ${name} = ${expression};`);
    return name;
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

  /** A value computed before the body. */
  atEntry(key: string, expression: string): string {
    const known = this.#atEntry.get(key);
    if (known !== undefined) return known;
    this.#atEntry.set(key, key);
    this.#prologue.push(`  let ${key} = ${expression};`);
    return key;
  }

  /** A function of the module's own; the call is an expression. */
  call(helper: HelperName, ...operands: readonly string[]): string {
    this.#use(helper);
    return `${helper}(${operands.join(", ")})`;
  }

  #use(helper: HelperName): void {
    if (this.usedHelpers.has(helper)) return;
    for (const other of helpers[helper].uses ?? []) this.#use(other);
    this.usedHelpers.add(helper);
  }

  builtin(name: EntryBuiltin): string {
    this.builtins.add(name);
    if (name.startsWith("subgroup")) this.extensions.add("subgroups");
    return name;
  }

  // Values ----------------------------------------------------------------------------------------------------------

  define(value: IrValue | undefined, held: Held): void {
    if (value !== undefined) this.#values.set(value.id, held);
  }

  /** What a value is, whole: to be given on without looking into it. */
  held(operand: Operand): Held {
    if (operand.kind === "value") return this.#defined(operand);
    return isNarrow(operand.type.element) ? { words: this.words(operand) } : { lanes: this.lanes(operand) };
  }

  #defined(value: IrValue): Held {
    const held = this.#values.get(value.id);
    if (held === undefined) {
      throw new CompileError(`kernel ${this.kernel.name}: value ${value.id} is used before it is made`);
    }
    return held;
  }

  isNativeHalf(element: ElementType): boolean {
    const native = isNativeHalf(element, this.features);
    if (native) this.extensions.add("f16");
    return native;
  }

  laneType(element: ElementType): string {
    if (this.isNativeHalf(element)) return "f16";
    return laneType(element, this.features);
  }

  constant(element: ElementType, value: number | bigint | boolean): string {
    return literal(element, value, this.isNativeHalf(element));
  }

  /** One atom for each lane. */
  lanes(operand: Operand): readonly string[] {
    if (operand.kind === "constant") {
      const one = this.constant(operand.type.element, operand.value);
      return Array.from({ length: operand.type.lanes }, () => one);
    }
    const held = this.#defined(operand);
    return held.lanes ?? this.once(`lanes:${operand.id}`, () => this.#unpack(operand.type, held.words!));
  }

  lane(operand: Operand): string {
    return this.lanes(operand)[0]!;
  }

  /** One u32 atom for each packed word of a narrow value; for 32-bit values, the bits of each lane. */
  words(operand: Operand): readonly string[] {
    const { element, lanes } = operand.type;
    if (operand.kind === "constant") return this.#constantWords(operand.type, operand.value);
    const held = this.#defined(operand);
    if (!isNarrow(element)) return held.lanes!.map((lane) => this.bitsOf(lane, element));
    return held.words ?? this.once(`words:${operand.id}`, () => this.pack(element, lanes, held.lanes!));
  }

  #constantWords({ element, lanes }: ValueType, value: number | bigint | boolean): readonly string[] {
    if (!isNarrow(element)) {
      const one = this.bitsOf(this.constant(element, value), element);
      return Array.from({ length: lanes }, () => one);
    }
    const bits = narrowBits(element, value);
    let word = 0;
    for (let lane = 0; lane < Math.min(lanes, 32 / element.bits); lane++)
      word |= bits << (lane * element.bits);
    return Array.from({ length: wordCount({ element, lanes }) }, () => hex(word));
  }

  /** The bits of a 32-bit lane. */
  bitsOf(lane: string, element: ElementType): string {
    const type = laneType(element, this.features);
    return type === "u32" ? lane : `bitcast<u32>(${lane})`;
  }

  /** A 32-bit lane from its bits. */
  fromBits(word: string, element: ElementType): string {
    const type = laneType(element, this.features);
    return type === "u32" ? word : `bitcast<${type}>(${word})`;
  }

  #unpack({ element, lanes }: ValueType, words: readonly string[]): readonly string[] {
    const perWord = 32 / element.bits;
    if (this.isNativeHalf(element)) {
      return words
        .flatMap((word) => {
          const pair = this.let(`bitcast<vec2<f16>>(${word})`);
          return [`${pair}.x`, `${pair}.y`];
        })
        .slice(0, lanes);
    }
    if (lanes === 1) return words;
    return words.flatMap((word) =>
      Array.from({ length: Math.min(perWord, lanes) }, (_, lane) =>
        this.let(`extractBits(${word}, ${lane * element.bits}u, ${element.bits}u)`),
      ),
    );
  }

  /** Packs lanes of a narrow type. */
  pack(element: ElementType, lanes: number, atoms: readonly string[]): readonly string[] {
    const perWord = Math.min(32 / element.bits, lanes);
    return Array.from({ length: wordCount({ element, lanes: lanes as 1 }) }, (_, word) => {
      const own = atoms.slice(word * perWord, (word + 1) * perWord);
      if (this.isNativeHalf(element))
        return this.let(`bitcast<u32>(vec2<f16>(${own[0]}, ${own[1] ?? "0.0h"}))`);
      if (own.length === 1) return own[0]!;
      const shifted = own.map((lane, i) => (i === 0 ? lane : `(${lane} << ${i * element.bits}u)`));
      return this.let(shifted.join(" | "));
    });
  }

  // Register variables ----------------------------------------------------------------------------------------------

  /** The subgroup matrix type of a variable that matrix operations touch. */
  matrixType(variable: RegisterVariable): string | undefined {
    return this.#matrices.get(variable.id);
  }

  /** Name of one element of a variable, or of a whole matrix. */
  variable(variable: RegisterVariable, element: number): string {
    this.#usedVariables.set(variable.id, variable);
    return `r${variable.id}_${this.matrixType(variable) === undefined ? element : 0}`;
  }

  /** Whether variables of a type hold packed words: lanes would have to be packed again. */
  holdsWords({ element, lanes }: ValueType): boolean {
    return isNarrow(element) && !(lanes === 1 && this.isNativeHalf(element));
  }

  /** Scalars that one element of a variable is made of: its type and their number. */
  variableParts({ type }: RegisterVariable): { readonly scalar: string; readonly count: number } {
    if (this.holdsWords(type)) return { scalar: "u32", count: wordCount(type) };
    return { scalar: this.laneType(type.element), count: type.lanes };
  }

  #declarations(): readonly string[] {
    return [...this.#usedVariables.values()].flatMap((variable) => {
      const matrix = this.matrixType(variable);
      if (matrix !== undefined) return [`  var ${this.variable(variable, 0)}: ${matrix};`];
      const { scalar, count } = this.variableParts(variable);
      return Array.from({ length: variable.count }, (_, element) => {
        const name = this.variable(variable, element);
        // More than four scalars are an array, which only constant indices touch.
        return `  var ${name}: ${count <= 4 ? vectorOf(scalar, count) : `array<${scalar}, ${count}>`};`;
      });
    });
  }

  // Arguments -------------------------------------------------------------------------------------------------------

  slot(kind: ArgumentSlot["kind"], parameter: number, dimension?: number): number {
    const found = this.slots.findIndex(
      (slot) =>
        slot.kind === kind &&
        slot.parameter === parameter &&
        (!("dimension" in slot) || slot.dimension === dimension),
    );
    if (found < 0) {
      throw new CompileError(`kernel ${this.kernel.name} has no ${kind} argument for parameter ${parameter}`);
    }
    return found;
  }

  error(message: string, site: number): CompileError {
    return compileErrorAt(this.kernel, message, site);
  }

  /** Declarations, what is computed at entry, and the body. */
  text(): readonly string[] {
    return [...this.#prologue, ...this.#declarations(), ...this.#lines];
  }
}

/** The components of a vector of `count`. */
export function componentsOf(name: string, count: number): readonly string[] {
  return count === 1 ? [name] : Array.from({ length: count }, (_, i) => `${name}.${components[i]}`);
}
