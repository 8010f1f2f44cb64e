/**
 * @file Arrays on the device: parameters in global memory, shared arrays, constant tables. An access names elements;
 * the address is the compiler's business, and constants in the index cost nothing.
 */
import type { ArrayReference, BufferParameter, ConstantTable, SharedArray } from "../ir/nodes.ts";
import type { AtomicOperation, Attributes, MemoryOrder, MemoryScope } from "../ir/operations.ts";
import {
  byteSize,
  type ElementType,
  type I32,
  type Index,
  i32,
  index as indexType,
  isStorage,
  type StorageType,
  type U32,
  u64,
} from "../types/types.ts";
import { tracer } from "./trace.ts";
import { constant, constantOperand, type Operand, operation, typedOperand, use, Value } from "./value.ts";
import { Vector, type VectorLanes } from "./vector.ts";

/** An element position: i32 and u32 for positions known to be small, `index` for anything. */
export type IndexOperand = Value<I32> | Value<U32> | Value<Index> | number;

/** How an access treats caches: "streaming" will not be used again, "volatile" is never cached or merged. */
export interface AccessOptions {
  readonly cache?: Attributes["load"]["cache"];
}

/** Order and scope of an atomic; relaxed and device-wide unless given. */
export interface AtomicOptions {
  readonly order?: MemoryOrder;
  readonly scope?: MemoryScope;
}

/** @internal The operand of an element position. */
export function indexOperand(position: IndexOperand): ReturnType<typeof use> {
  if (typeof position === "number") {
    if (!Number.isSafeInteger(position))
      throw tracer().error(`element position ${position} is not an integer`);
    return constantOperand(Math.abs(position) < 2 ** 31 ? i32 : indexType, 1, position);
  }
  if (!(position instanceof Value))
    throw tracer().error("an element position is a number or an i32, u32 or index value");
  const { name } = position.type as ElementType;
  if (name !== "i32" && name !== "u32" && name !== "index") {
    throw tracer().error(`an element position is i32, u32 or index, not ${name}; convert with .to(index)`);
  }
  return use(position);
}

/** Widens a position to the type of global positions. */
export function toIndex(position: IndexOperand): Value<Index> {
  return typeof position === "number"
    ? constant(indexType, position)
    : (position as Value<ElementType>).to(indexType);
}

/** Element accesses that every array offers, by linear position. */
export abstract class LinearArray<T extends StorageType> {
  abstract readonly type: T;
  /** @internal */
  abstract readonly reference: ArrayReference;

  /** The element at a linear position. */
  loadAt(position: IndexOperand, options: AccessOptions = {}): Value<T> {
    this.checkReadable();
    const trace = tracer();
    const ir = trace.emit(
      "load",
      { element: this.type, lanes: 1 },
      [indexOperand(this.positionOf(position))],
      {
        array: this.reference,
        offset: 0,
        cache: options.cache ?? "default",
      },
    );
    return new Value(this.type, ir as never, trace.scope, trace.positions.at(-1));
  }
  /** `lanes` consecutive elements as one access; the position must be a multiple of `lanes`. */
  loadVectorAt<N extends VectorLanes>(
    lanes: N,
    position: IndexOperand,
    options: AccessOptions = {},
  ): Vector<T, N> {
    this.checkReadable();
    const trace = tracer();
    this.checkWidth(lanes);
    const ir = trace.emit("load", { element: this.type, lanes }, [indexOperand(this.positionOf(position))], {
      array: this.reference,
      offset: 0,
      cache: options.cache ?? "default",
    });
    return new Vector(this.type, lanes, ir as never, trace.scope, trace.positions.at(-1));
  }
  storeAt(position: IndexOperand, value: Operand<T>, options: AccessOptions = {}): void {
    this.checkWritable();
    const operands = [indexOperand(this.positionOf(position)), use(typedOperand(value, this.type))];
    tracer().emit("store", undefined, operands, {
      array: this.reference,
      offset: 0,
      cache: options.cache ?? "default",
    });
  }
  /** Stores all lanes as one access; the position must be a multiple of the lanes. */
  storeVectorAt<N extends VectorLanes>(
    position: IndexOperand,
    value: Vector<T, N>,
    options: AccessOptions = {},
  ): void {
    this.checkWritable();
    this.checkWidth(value.lanes);
    if ((value.type as ElementType) !== this.type) {
      throw tracer().error(
        `an array of ${this.type.name} cannot store a vector of ${value.type.name}; convert with .to(${this.type.name})`,
        value.position,
      );
    }
    tracer().emit("store", undefined, [indexOperand(this.positionOf(position)), use(value)], {
      array: this.reference,
      offset: 0,
      cache: options.cache ?? "default",
    });
  }
  /** Atomic read-modify-write; returns the old value. */
  atomicAt(
    name: Exclude<AtomicOperation, "compareExchange">,
    position: IndexOperand,
    value: Operand<T>,
    options: AtomicOptions = {},
  ): Value<T> {
    return this.#atomic(name, [position, value], options);
  }
  /** Stores `replacement` where the element equals `expected`; returns the old value. */
  compareExchangeAt(
    position: IndexOperand,
    expected: Operand<T>,
    replacement: Operand<T>,
    options: AtomicOptions = {},
  ): Value<T> {
    return this.#atomic("compareExchange", [position, expected, replacement], options);
  }

  #atomic(
    name: AtomicOperation,
    [position, ...values]: readonly [IndexOperand, ...Operand<T>[]],
    options: AtomicOptions,
  ): Value<T> {
    this.checkWritable();
    const trace = tracer();
    const operands = [
      indexOperand(this.positionOf(position)),
      ...values.map((value) => use(typedOperand(value, this.type))),
    ];
    const ir = trace.emit("atomic", { element: this.type, lanes: 1 }, operands, {
      array: this.reference,
      offset: 0,
      operation: name,
      order: options.order ?? "relaxed",
      scope: options.scope ?? "device",
    });
    return new Value(this.type, ir as never, trace.scope, trace.positions.at(-1));
  }

  /** @internal The position in the parameter or array itself. */
  positionOf(position: IndexOperand): IndexOperand {
    return position;
  }

  /** @internal */
  protected checkReadable(): void {}
  /** @internal */
  protected checkWritable(): void {}

  protected checkWidth(lanes: number): void {
    if (lanes * this.type.bits > 128) {
      throw tracer().error(
        `${lanes} x ${this.type.name} is ${(lanes * this.type.bits) / 8} bytes; one access moves at most 16`,
      );
    }
  }
}

/** An array parameter. Rank 0 is bare storage addressed linearly; rank 1 is contiguous; more ranks carry strides. */
export class GlobalArray<T extends StorageType> extends LinearArray<T> {
  readonly reference: ArrayReference;
  constructor(
    readonly type: T,
    /** @internal */ readonly parameter: BufferParameter,
    /** @internal */ readonly first?: Value<Index> | undefined,
  ) {
    super();
    this.reference = { kind: "buffer", parameter };
  }

  /** The same storage with linear positions counted from element `first` on: one matrix of several, say. */
  from(first: Value<Index>): GlobalArray<T> {
    return new GlobalArray(
      this.type,
      this.parameter,
      this.first === undefined ? first : this.first.add(first),
    );
  }
  /** @internal */
  override positionOf(position: IndexOperand): IndexOperand {
    return this.first === undefined ? position : this.first.add(toIndex(position));
  }

  get rank(): number {
    return this.parameter.rank;
  }
  /** Extent along a dimension. */
  size(dimension = 0): Value<I32> {
    this.#checkDimension(dimension);
    return operation("bufferSize", i32, [], { parameter: this.parameter.id, dimension });
  }
  /** Elements between neighbours along a dimension. */
  stride(dimension: number): Value<Index> {
    this.#checkDimension(dimension);
    return operation("bufferStride", indexType, [], { parameter: this.parameter.id, dimension });
  }
  /** Linear position of a tuple of coordinates. */
  position(...coordinates: readonly IndexOperand[]): IndexOperand {
    const { rank } = this.parameter;
    if (coordinates.length !== Math.max(rank, 1)) {
      throw tracer().error(
        `${this.parameter.name} has rank ${rank}; ${coordinates.length} coordinates were given`,
      );
    }
    if (rank <= 1) return coordinates[0];
    let sum: Value<Index> | undefined;
    coordinates.forEach((coordinate, dimension) => {
      const term = toIndex(coordinate).mul(this.stride(dimension));
      sum = sum === undefined ? term : sum.add(term);
    });
    return sum as Value<Index>;
  }
  /** The element at the given coordinates, one for each dimension. */
  load(...coordinates: readonly IndexOperand[]): Value<T> {
    return this.loadAt(this.position(...coordinates));
  }
  /** Stores the last argument at the coordinates before it. */
  store(...args: readonly [...coordinates: readonly IndexOperand[], value: Operand<T>]): void {
    const [coordinates, value] = [args.slice(0, -1), args.at(-1)];
    this.storeAt(this.position(...(coordinates as IndexOperand[])), value as Operand<T>);
  }

  #checkDimension(dimension: number): void {
    if (!Number.isInteger(dimension) || dimension < 0 || dimension >= this.parameter.rank) {
      throw tracer().error(
        `${this.parameter.name} has rank ${this.parameter.rank}; there is no dimension ${dimension}`,
      );
    }
  }
  protected override checkReadable(): void {
    if (this.parameter.access === "write")
      throw tracer().error(`${this.parameter.name} is an output; declare it with inout() to read it`);
  }
  protected override checkWritable(): void {
    if (this.parameter.access === "read")
      throw tracer().error(
        `${this.parameter.name} is an input; declare it with output() or inout() to write it`,
      );
  }
}

/** An array in the block's shared memory, row-major over its compile-time shape. */
export class SharedMemory<T extends StorageType> extends LinearArray<T> {
  readonly reference: ArrayReference;
  constructor(
    readonly type: T,
    readonly shape: readonly number[],
    /** @internal */ readonly array: SharedArray,
  ) {
    super();
    this.reference = { kind: "shared", array };
  }

  get length(): number {
    return this.array.length;
  }
  position(...coordinates: readonly (Value<I32> | number)[]): Value<I32> | number {
    if (coordinates.length !== this.shape.length) {
      throw tracer().error(
        `this shared array has rank ${this.shape.length}; ${coordinates.length} coordinates were given`,
      );
    }
    let sum: Value<I32> | number = 0;
    let stride = this.length;
    coordinates.forEach((coordinate, dimension) => {
      stride /= this.shape[dimension];
      if (typeof coordinate === "number") sum = plus(sum, coordinate * stride);
      else sum = plus(sum, stride === 1 ? coordinate : coordinate.mul(stride));
    });
    return sum;
  }
  load(...coordinates: readonly (Value<I32> | number)[]): Value<T> {
    return this.loadAt(this.position(...coordinates));
  }
  store(...args: readonly [...coordinates: readonly (Value<I32> | number)[], value: Operand<T>]): void {
    const [coordinates, value] = [args.slice(0, -1), args.at(-1)];
    this.storeAt(this.position(...(coordinates as (Value<I32> | number)[])), value as Operand<T>);
  }
}

/** @internal Sum that keeps compile-time parts apart. */
export function plus(a: Value<I32> | number, b: Value<I32> | number): Value<I32> | number {
  if (typeof a === "number") return typeof b === "number" ? a + b : a === 0 ? b : b.add(a);
  return b === 0 ? a : a.add(b);
}

/** Shared memory that several typed views can overlay. */
export class SharedArena {
  constructor(
    readonly bytes: number,
    /** @internal */ readonly byteOffset: number,
  ) {}

  /** A typed view at a byte offset of the arena. Views may overlap: keeping them apart in time is the kernel's duty. */
  view<T extends StorageType>(type: T, shape: number | readonly number[], byteOffset = 0): SharedMemory<T> {
    const trace = tracer();
    const extents = typeof shape === "number" ? [shape] : shape;
    const length = extents.reduce((product, extent) => product * extent, 1);
    checkShape(extents);
    const bytes = length * byteSize(type);
    if (byteOffset < 0 || byteOffset + bytes > this.bytes) {
      throw trace.error(
        `a view of ${bytes} bytes at ${byteOffset} does not fit an arena of ${this.bytes} bytes`,
      );
    }
    if ((this.byteOffset + byteOffset) % byteSize(type) !== 0) {
      throw trace.error(
        `a view of ${type.name} must begin at a multiple of ${byteSize(type)} bytes, not ${byteOffset}`,
      );
    }
    return new SharedMemory(
      type,
      extents,
      trace.declareShared(type, length, this.byteOffset + byteOffset, "data"),
    );
  }
}

function checkShape(shape: readonly number[]): void {
  if (!shape.every((extent) => Number.isInteger(extent) && extent > 0)) {
    throw tracer().error(
      `a shared array's shape is made of positive integers known while tracing, not [${shape.join(", ")}]`,
    );
  }
}

/** A shared array of compile-time shape, not initialised. `alignment` in bytes. */
export function shared<T extends StorageType>(
  type: T,
  shape: number | readonly number[],
  alignment = 16,
): SharedMemory<T> {
  const extents = typeof shape === "number" ? [shape] : shape;
  if (!isStorage(type)) throw tracer().error(`${(type as ElementType).name} has no form in memory`);
  checkShape(extents);
  const length = extents.reduce((product, extent) => product * extent, 1);
  return sharedArena(length * byteSize(type), alignment).view(type, extents);
}

/** `bytes` of shared memory for overlaid views. */
export function sharedArena(bytes: number, alignment = 16): SharedArena {
  return new SharedArena(bytes, tracer().reserveShared(bytes, alignment));
}

/** @internal Shared words for barriers. */
export function sharedBarriers(count: number): SharedArray {
  const trace = tracer();
  return trace.declareShared(u64, count, trace.reserveShared(count * 8, 8), "barrier");
}

/** Read-only numbers compiled into the kernel. */
export class Table<T extends StorageType> extends LinearArray<T> {
  readonly reference: ArrayReference;
  constructor(
    readonly type: T,
    table: ConstantTable,
  ) {
    super();
    this.reference = { kind: "constant", table };
  }
  load(position: IndexOperand): Value<T> {
    return this.loadAt(position);
  }
  protected override checkWritable(): void {
    throw tracer().error("a constant table cannot be written");
  }
}

/** A table of numbers compiled into the kernel. */
export function table<T extends StorageType>(type: T, values: readonly (number | bigint)[]): Table<T> {
  const trace = tracer();
  const held = values.map((value) => constantOperand(type, 1, value).value as number | bigint);
  const id = trace.constants.length;
  const entry: ConstantTable = { id, name: `table${id}`, element: type, values: held };
  trace.constants.push(entry);
  return new Table(type, entry);
}
