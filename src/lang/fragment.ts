/**
 * @file Matrix fragments: the part of a tile that one lane holds in registers, as tensor-core instructions want it.
 *
 * A fragment is a named register array that instructions update in place. Where its layout is known, each element's
 * coordinates are a run-time part that depends on the lane plus a compile-time part that depends on the element, so that
 * a function of coordinates costs no more than it must. Layouts follow the PTX ISA, "Matrix fragments for mma".
 */
import type { IrValue, Lanes, RegisterRange, RegisterVariable } from "../ir/nodes.ts";
import type { MatrixInstruction } from "../target/facts.ts";
import { type ElementType, type I32, tf32 } from "../types/types.ts";
import { subgroupId } from "./thread.ts";
import { tracer } from "./trace.ts";
import { type Operand, typedOperand, use, type Value } from "./value.ts";
import { splat, Vector, type VectorLanes, vector, wrap } from "./vector.ts";

/** Where the elements that a lane holds lie in the tile: position = lane part + element part. */
export interface FragmentLayout {
  readonly rows: number;
  readonly columns: number;
  /** Coordinates that depend on the lane. */
  lane(): { readonly row: Value<I32>; readonly column: Value<I32> };
  /** Coordinates of element `i` on top of the lane's. */
  element(i: number): { readonly row: number; readonly column: number };
}

/** A fragment of `registers` registers, each holding `lanes` packed elements. */
export class Fragment<T extends ElementType = ElementType> {
  /** @internal */
  readonly variable: RegisterVariable;

  constructor(
    readonly type: T,
    /** Elements packed in one register. */
    readonly packed: Lanes,
    readonly registers: number,
    /** Undefined where the hardware keeps the layout to itself (wmma). */
    readonly layout: FragmentLayout | undefined,
    name = "fragment",
  ) {
    this.variable = tracer().declareVariable(name, type, packed, registers);
  }

  /** Elements in this lane. */
  get count(): number {
    return this.registers * this.packed;
  }
  /** @internal */
  range(access: RegisterRange["access"], offset = 0, count: number = this.registers): RegisterRange {
    return { variable: this.variable, offset, count, access };
  }
  /** One whole register. */
  register(number: number): Value<T> | Vector<T> {
    this.#checkRegister(number);
    const ir = tracer().emit("readRegister", this.variable.type, [], {}, [this.range("read", number, 1)]);
    return wrap(this.variable.type, ir as IrValue) as unknown as Value<T> | Vector<T>;
  }
  setRegister(number: number, value: Value<T> | Vector<T> | number): void {
    this.#checkRegister(number);
    const held =
      typeof value !== "number"
        ? value
        : this.packed === 1
          ? typedOperand(value, this.type)
          : splat(this.type, this.packed, value);
    tracer().emit("writeRegister", undefined, [use(held)], {}, [this.range("write", number, 1)]);
  }
  /** Element `i` of this lane. */
  get(i: number): Value<T> {
    const held = this.register(Math.floor(i / this.packed));
    return held instanceof Vector ? held.at(i % this.packed) : held;
  }
  /** All elements of this lane. */
  elements(): Value<T>[] {
    return Array.from({ length: this.registers }, (_, number) => {
      const held = this.register(number);
      return held instanceof Vector ? held.elements() : [held];
    }).flat();
  }
  /** Sets all elements of this lane, in order. */
  setElements(values: readonly Value<T>[]): void {
    if (values.length !== this.count)
      throw tracer().error(`a fragment of ${this.count} elements cannot take ${values.length}`);
    for (let number = 0; number < this.registers; number++) {
      const part = values.slice(number * this.packed, (number + 1) * this.packed);
      this.setRegister(number, this.packed === 1 ? part[0] : vector(...part));
    }
  }
  /** The same number everywhere. */
  fill(value: Operand<T> & number): void {
    for (let number = 0; number < this.registers; number++) this.setRegister(number, value);
  }
  /** Coordinates of element `i`. @throws TraceError where the layout is opaque. */
  coordinates(i: number): { readonly row: Value<I32>; readonly column: Value<I32> } {
    if (this.layout === undefined) {
      throw tracer().error(
        "this fragment's layout is opaque; store it to shared memory to work with coordinates",
      );
    }
    const base = this.layout.lane();
    const { row, column } = this.layout.element(i);
    return { row: base.row.add(row), column: base.column.add(column) };
  }
  /** Replaces each element by `body(element, i)`. */
  map(body: (value: Value<T>, i: number) => Value<T>): void {
    for (let number = 0; number < this.registers; number++) {
      const held = this.register(number);
      const first = number * this.packed;
      this.setRegister(
        number,
        held instanceof Vector ? held.map((value, lane) => body(value, first + lane)) : body(held, first),
      );
    }
  }

  #checkRegister(number: number): void {
    if (!Number.isInteger(number) || number < 0 || number >= this.registers) {
      throw tracer().error(`register ${number} of a fragment of ${this.registers}`);
    }
  }
}

/** A fragment whose element type TypeScript does not know. */
// biome-ignore lint/suspicious/noExplicitAny: `Fragment` is invariant, so no single element type stands for all
export type AnyFragment = Fragment<any>;

/** Which operand of a matrix instruction. */
export type FragmentUse = "a" | "b" | "accumulator";

/** Elements of a type that share a 32-bit register. */
export function packedLanes(type: ElementType): Lanes {
  const bits = type === tf32 ? 32 : type.bits;
  return bits >= 32 ? 1 : ((32 / bits) as VectorLanes);
}

/** Layout of one operand of an m16n8 or m8n8 instruction of 32 lanes. Rows and columns of B are (k, n). */
export function mmaLayout(
  instruction: MatrixInstruction,
  use: FragmentUse,
  type: ElementType,
): FragmentLayout {
  const { m, n, k } = instruction;
  const width = packedLanes(type);
  const halves = m / 8;
  const group = (): Value<I32> => subgroupId.lane.floorDiv(4);
  const pair = (): Value<I32> => subgroupId.lane.floorMod(4);
  switch (use) {
    case "a":
      return {
        rows: m,
        columns: k,
        lane: () => ({ row: group(), column: pair().mul(width) }),
        element(i) {
          const register = Math.floor(i / width);
          return {
            row: 8 * (register % halves),
            column: (i % width) + 4 * width * Math.floor(register / halves),
          };
        },
      };
    case "b":
      return {
        rows: k,
        columns: n,
        lane: () => ({ row: pair().mul(width), column: group() }),
        element: (i) => ({ row: (i % width) + 4 * width * Math.floor(i / width), column: 0 }),
      };
    case "accumulator":
      return {
        rows: m,
        columns: n,
        lane: () => ({ row: group(), column: pair().mul(2) }),
        element: (i) => ({ row: 8 * Math.floor(i / 2), column: i % 2 }),
      };
  }
}

/** `count` tiles of a layout next to each other along their columns; each has `elements` elements a lane. */
export function sideBySide(layout: FragmentLayout, count: number, elements: number): FragmentLayout {
  return {
    rows: layout.rows,
    columns: layout.columns * count,
    lane: () => layout.lane(),
    element(i) {
      const { row, column } = layout.element(i % elements);
      return { row, column: column + layout.columns * Math.floor(i / elements) };
    },
  };
}

/** Layout over the four warps of a warpgroup: A from registers (m64) or the accumulator of m64nN. */
export function warpgroupLayout(
  instruction: MatrixInstruction,
  use: "a" | "accumulator",
  type: ElementType,
): FragmentLayout {
  const rowOfWarp = (): Value<I32> => subgroupId.index.floorMod(4).mul(16);
  if (use === "a") {
    const inner = mmaLayout({ ...instruction, m: 16 }, "a", type);
    return {
      rows: 64,
      columns: instruction.k,
      lane() {
        const { row, column } = inner.lane();
        return { row: rowOfWarp().add(row), column };
      },
      element: (i) => inner.element(i),
    };
  }
  return {
    rows: 64,
    columns: instruction.n,
    lane: () => ({
      row: rowOfWarp().add(subgroupId.lane.floorDiv(4)),
      column: subgroupId.lane.floorMod(4).mul(2),
    }),
    element: (i) => ({ row: 8 * (Math.floor(i / 2) % 2), column: 8 * Math.floor(i / 4) + (i % 2) }),
  };
}
