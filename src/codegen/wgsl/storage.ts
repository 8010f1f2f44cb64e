/**
 * @file How arrays are declared. WGSL gives each variable one type, so the accesses of a kernel decide: elements of the
 * array's own type or packed words, single or as vectors, plain or atomic.
 *
 * - An array whose words some lane writes in part (a single f16 without native f16, a single i8) is made of atomic words.
 * - Vector accesses want vectors. Where a kernel also stores single elements, vectors are chosen only if the target
 *   leaves their other components alone.
 * - Arrays of f16 of which single elements are only loaded are made of f16, or of words where words come four at a time.
 * - Shared views that overlap, and buffers bound once for several arrays of different types, are arrays of words; of f16
 *   where single f16 are stored and the target has the type.
 */
import type {
  ArrayReference,
  BufferParameter,
  ConstantTable,
  KernelIr,
  SharedArray,
  ValueType,
} from "../../ir/nodes.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import { visitStatements } from "../../ir/parameters.ts";
import type { WgslFeatures } from "../../target/webgpu.ts";
import { byteSize, type ElementType } from "../../types/types.ts";
import { isNarrow, laneType, type ScalarType, vectorOf } from "./types.ts";

/** One declared array. */
export interface Storage {
  readonly name: string;
  readonly space: "storage" | "workgroup" | "constant";
  /** Type of its scalars. */
  readonly scalar: ScalarType;
  /** Scalars of one array element: a vector if more than one. */
  readonly unit: 1 | 2 | 4;
  readonly atomic: boolean;
  readonly writable: boolean;
  /** Scalars, for arrays of fixed length. */
  readonly length: number | undefined;
}

/** An array as accesses see it. */
export interface View {
  readonly storage: Storage;
  readonly element: ElementType;
  /** Bytes from the start of the storage, known while generating. */
  readonly byteOffset: number;
  /** Word of the uniform block that holds the first element's position. */
  readonly base: string | undefined;
}

/** A binding of group 0: argument slots of its arrays. */
export interface StorageBinding {
  readonly storage: Storage;
  readonly slots: readonly number[];
  readonly alignment: number;
}

interface Access {
  readonly array: ArrayReference;
  readonly type: ValueType;
  readonly kind: "load" | "store" | "atomic" | "matrix";
  readonly volatile: boolean;
}

function accessesOf(kernel: KernelIr): readonly Access[] {
  const accesses: Access[] = [];
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation") return;
    switch (statement.name) {
      case "load":
        accesses.push(
          access(statement.attributes.array, statement.result!.type, "load", statement.attributes.cache),
        );
        return;
      case "store": {
        const { array, cache } = statement.attributes;
        accesses.push(access(array, statement.operands[1]!.type, "store", cache));
        return;
      }
      case "atomic":
        accesses.push(access(statement.attributes.array, statement.operands[1]!.type, "atomic", "default"));
        return;
      case "wmmaLoad":
      case "wmmaStore": {
        const { array, element } = statement.attributes;
        accesses.push(access(array, { element, lanes: 1 }, "matrix", "default"));
        return;
      }
      default:
        return;
    }
  });
  return accesses;
}

function access(array: ArrayReference, type: ValueType, kind: Access["kind"], cache: string): Access {
  return { array, type, kind, volatile: cache === "volatile" };
}

/** What an access's array is, for comparisons. */
function entityOf(array: ArrayReference): BufferParameter | SharedArray | ConstantTable {
  switch (array.kind) {
    case "buffer":
      return array.parameter;
    case "shared":
      return array.array;
    case "constant":
      return array.table;
    default:
      return array satisfies never;
  }
}

interface Shape {
  readonly scalar: ScalarType;
  readonly unit: 1 | 2 | 4;
  readonly atomic: boolean;
}

/** The scalars that one access moves. */
function scalarsOf({ type }: Access, scalar: ScalarType): number {
  const bits = scalar === "f16" ? 16 : 32;
  return Math.max(1, (type.element.bits * type.lanes) / bits);
}

function unitOf(count: number): 1 | 2 | 4 {
  return count >= 4 ? 4 : count >= 2 ? 2 : 1;
}

/** Chooses the declaration for arrays of given element types. */
function shapeOf(
  accesses: readonly Access[],
  elements: readonly ElementType[],
  features: WgslFeatures,
  widest: 1 | 2 | 4,
): Shape {
  const [first] = elements;
  const single = elements.every((element) => element === first) ? first : undefined;
  const plain = accesses.filter(({ kind }) => kind === "load" || kind === "store");
  const stores = plain.filter(({ kind }) => kind === "store");
  const partial = (one: Access): boolean => one.type.element.bits * one.type.lanes < 32;
  const partialStores = stores.filter(partial);
  const matrices = accesses.filter(({ kind }) => kind === "matrix");
  // Native halves are stored singly; what is wider beside them is made of two, if it is no matrix.
  const halves =
    features.f16 &&
    partialStores.every(({ type }) => type.element.name === "f16") &&
    matrices.every(({ type }) => type.element.bits <= 16);
  const atomic =
    accesses.some(({ kind }) => kind === "atomic") ||
    plain.some(({ volatile, type }) => volatile && type.element.bits * type.lanes === 32) ||
    (partialStores.length > 0 && !halves);
  if (atomic) return { scalar: single?.name === "i32" ? "i32" : "u32", unit: 1, atomic };
  // Matrices in global memory have any stride, which counts elements of the array.
  const strided = matrices.some(({ array }) => array.kind === "buffer");
  const scalar: ScalarType =
    halves &&
    ((strided && single?.name === "f16") ||
      partialStores.length > 0 ||
      (single?.name === "f16" && plain.some(partial) && !plain.some((one) => scalarsOf(one, "u32") >= 4)))
      ? "f16"
      : single !== undefined && !isNarrow(single)
        ? (laneType(single, features) as ScalarType)
        : "u32";
  const widths = plain.map((one) => unitOf(scalarsOf(one, scalar)));
  const narrowestStore = Math.min(4, ...stores.map((one) => unitOf(scalarsOf(one, scalar))));
  const wanted = Math.min(widest, Math.max(1, ...widths));
  const unit = features.componentStores ? wanted : Math.min(wanted, narrowestStore);
  if (strided || (matrices.length > 0 && unit === 2)) return { scalar, unit: 1, atomic: false };
  return { scalar, unit: unit as 1 | 2 | 4, atomic: false };
}

/** Shared arrays that overlap, directly or through others. */
function overlapping(arrays: readonly SharedArray[]): readonly (readonly SharedArray[])[] {
  const end = (array: SharedArray): number => array.byteOffset + array.length * byteSize(array.element);
  const sorted = arrays.toSorted((a, b) => a.byteOffset - b.byteOffset || end(a) - end(b));
  const groups: SharedArray[][] = [];
  let reached = -1;
  for (const array of sorted) {
    if (array.byteOffset >= reached) groups.push([]);
    groups.at(-1)!.push(array);
    reached = Math.max(reached, end(array));
  }
  return groups;
}

export class StoragePlan {
  readonly bindings: readonly StorageBinding[];
  readonly shared: readonly Storage[];
  readonly tables: readonly { readonly storage: Storage; readonly table: ConstantTable }[];
  readonly #views: Map<object, View> = new Map();

  constructor(
    kernel: KernelIr,
    features: WgslFeatures,
    slots: readonly ArgumentSlot[],
    merged: readonly (readonly number[])[],
  ) {
    const accesses = accessesOf(kernel);
    const of = (entities: readonly object[]): readonly Access[] =>
      accesses.filter(({ array }) => entities.includes(entityOf(array)));
    this.bindings = this.#planBindings(kernel, features, slots, merged, of);
    this.shared = this.#planShared(kernel, features, of);
    this.tables = kernel.constants.map((table) => {
      const storage = fixed(`table${table.id}`, "constant", { scalar: "u32", unit: 1, atomic: false }, 0);
      this.#views.set(table, { storage, element: table.element, byteOffset: 0, base: undefined });
      return { storage, table };
    });
  }

  view(array: ArrayReference): View {
    return this.#views.get(entityOf(array))!;
  }

  #planBindings(
    kernel: KernelIr,
    features: WgslFeatures,
    slots: readonly ArgumentSlot[],
    merged: readonly (readonly number[])[],
    of: (entities: readonly object[]) => readonly Access[],
  ): readonly StorageBinding[] {
    const parameterOf = (slot: number): BufferParameter =>
      kernel.parameters.find(({ id }) => id === slots[slot]!.parameter) as BufferParameter;
    const pointers = slots.flatMap((slot, i) => (slot.kind === "pointer" ? [i] : []));
    const groups = pointers.flatMap((slot) => {
      const group = merged.find((members) => members.includes(slot));
      if (group === undefined) return [[slot]];
      return Math.min(...group) === slot ? [group.toSorted((a, b) => a - b)] : [];
    });
    return groups.map((group, i): StorageBinding => {
      const parameters = group.map(parameterOf);
      const accesses = of(parameters);
      const elements = parameters.map(({ element }) => element);
      const shape = shapeOf(accesses, elements, features, 4);
      const writable = parameters.some(({ access }) => access !== "read") || shape.atomic;
      const storage: Storage = { name: `b${i}`, space: "storage", ...shape, writable, length: undefined };
      group.forEach((slot, k) => {
        const parameter = parameters[k]!;
        this.#views.set(parameter, {
          storage,
          element: parameter.element,
          byteOffset: 0,
          base: `args.base${slot}`,
        });
      });
      const bytes = accesses.map(({ type }) => Math.min(16, (type.element.bits * type.lanes) / 8));
      return { storage, slots: group, alignment: Math.max(1, ...bytes) };
    });
  }

  #planShared(
    kernel: KernelIr,
    features: WgslFeatures,
    of: (entities: readonly object[]) => readonly Access[],
  ): readonly Storage[] {
    const touched = kernel.shared.filter((array) => of([array]).length > 0);
    return overlapping(touched).map((group, i) => {
      const start = Math.floor(group[0]!.byteOffset / 16) * 16;
      const end = Math.max(...group.map((one) => one.byteOffset + one.length * byteSize(one.element)));
      const aligned = group.every(({ byteOffset }) => byteOffset % 16 === 0);
      const shape = shapeOf(
        of(group),
        group.map(({ element }) => element),
        features,
        aligned ? 4 : 1,
      );
      const scalarBytes = shape.scalar === "f16" ? 2 : 4;
      const storage = fixed(`s${i}`, "workgroup", shape, Math.ceil((end - start) / scalarBytes));
      for (const array of group) {
        const byteOffset = array.byteOffset - start;
        this.#views.set(array, { storage, element: array.element, byteOffset, base: undefined });
      }
      return storage;
    });
  }
}

function fixed(name: string, space: Storage["space"], shape: Shape, length: number): Storage {
  return { name, space, ...shape, writable: space === "workgroup", length };
}

/** The type in a declaration. */
export function storageType({ scalar, unit, atomic, length }: Storage): string {
  const element = atomic ? `atomic<${scalar}>` : vectorOf(scalar, unit);
  return length === undefined
    ? `array<${element}>`
    : `array<${element}, ${Math.max(1, Math.ceil(length / unit))}>`;
}
