/**
 * @file Where what outlives a region lies: *slots* in the subgroup's three banks. A slot is one element for each lane,
 * lane l of slot s at `bank[s + l]`; s is a multiple of the subgroup's width.
 */
import type { IrConstant, IrValue, KernelIr, RegisterRange, RegisterVariable } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";

/** `f` is a Float64Array (floats and index), `i` an Int32Array (small integers and bool), `b` an array of bigint. */
export type Bank = "f" | "i" | "b";

/** The bank that holds elements of a type. */
export function bankOf(element: ElementType): Bank {
  if (element.name === "i64" || element.name === "u64") return "b";
  return element.class === "float" || element.name === "index" ? "f" : "i";
}

/** A constant that a collective reads like any other operand. */
export interface ConstantSlot {
  readonly bank: Bank;
  readonly slot: number;
  readonly value: number | bigint | boolean;
}

/** Hands out slots. */
export class Storage {
  readonly constants: ConstantSlot[] = [];
  /** Number of every variable's first element, for flags by element. */
  readonly elementBase: ReadonlyMap<RegisterVariable, number>;
  readonly elementCount: number;
  private readonly used: Record<Bank, number> = { f: 0, i: 0, b: 0 };
  private readonly values = new Map<number, number>();
  private readonly variables = new Map<RegisterVariable, number>();
  private readonly constantSlots = new Map<string, number>();

  constructor(kernel: KernelIr) {
    this.width = kernel.subgroupSize;
    const bases = new Map<RegisterVariable, number>();
    let elements = 0;
    for (const variable of kernel.variables) {
      bases.set(variable, elements);
      elements += variable.count;
    }
    this.elementBase = bases;
    this.elementCount = elements;
  }

  private readonly width: number;

  /** Slots handed out, by bank. */
  count(bank: Bank): number {
    return this.used[bank];
  }

  allocate(bank: Bank, slots: number): number {
    const first = this.used[bank] * this.width;
    this.used[bank] += slots;
    return first;
  }

  /** Slot of a value's lane. */
  valueSlot(value: IrValue, lane = 0): number {
    let first = this.values.get(value.id);
    if (first === undefined) {
      first = this.allocate(bankOf(value.type.element), value.type.lanes);
      this.values.set(value.id, first);
    }
    return first + lane * this.width;
  }

  /** Slot of a constant, filled once when a subgroup is made. */
  constantSlot({ value, type }: IrConstant): number {
    const bank = bankOf(type.element);
    const key = `${bank}:${Object.is(value, -0) ? "-0" : String(value)}`;
    let slot = this.constantSlots.get(key);
    if (slot === undefined) {
      slot = this.allocate(bank, 1);
      this.constantSlots.set(key, slot);
      this.constants.push({ bank, slot, value });
    }
    return slot;
  }

  /** Slot of lane `lane` of a variable's element. */
  variableSlot(variable: RegisterVariable, element = 0, lane = 0): number {
    let first = this.variables.get(variable);
    if (first === undefined) {
      first = this.allocate(bankOf(variable.type.element), variable.count * variable.type.lanes);
      this.variables.set(variable, first);
    }
    return first + (element * variable.type.lanes + lane) * this.width;
  }

  /** What matrix operations need to know of a range, as a JavaScript literal. */
  rangeLiteral({ variable, offset, count }: RegisterRange): string {
    const { element, lanes } = variable.type;
    const base = this.elementBase.get(variable)! + offset;
    return `{element: "${element.name}", bank: "${bankOf(element)}", slot: ${this.variableSlot(variable, offset)}, slots: ${count * lanes}, first: ${base}, elements: ${count}}`;
  }
}
