/** @file Launch arguments as kernels see them, by parameter. */
import { ArgumentError } from "../../errors.ts";
import type { BufferParameter, KernelIr, TensorMapParameter } from "../../ir/nodes.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import { byteSize, type ElementType, type StorageType } from "../../types/types.ts";
import type { ArgumentValue, TensorView } from "../backend.ts";
import { SimulatorBuffer, type TypedArray, typedView } from "./buffers.ts";
import type { BufferShadow } from "./shadow-cells.ts";

/** An array parameter. */
export class BufferBinding {
  readonly sizes: number[] = [];
  readonly strides: number[] = [];
  /** Shadow of the buffer in the running launch; undefined where nothing can race. */
  shadow: BufferShadow | undefined = undefined;
  readonly size: number;
  readonly length: number;
  readonly view: TypedArray;
  constructor(
    readonly parameter: BufferParameter,
    readonly buffer: SimulatorBuffer,
    readonly byteOffset: number,
    byteLength: number,
  ) {
    this.size = byteSize(parameter.element);
    this.length = Math.floor(byteLength / this.size);
    this.view = typedView(parameter.element, buffer.data, byteOffset, this.length);
  }
}

/** A tensor map parameter. */
export class TensorBinding {
  shadow: BufferShadow | undefined = undefined;
  readonly size: number;
  readonly buffer: SimulatorBuffer;
  constructor(
    readonly map: TensorMapParameter,
    readonly view: TensorView,
  ) {
    this.size = byteSize(map.element);
    this.buffer = asBuffer(view.buffer);
  }
}

/** What a parameter is bound to; scalars are their values. */
export type ArgumentBinding = BufferBinding | TensorBinding | number | bigint | boolean | undefined;

/** @throws ArgumentError for a buffer of another device */
export function asBuffer(buffer: unknown): SimulatorBuffer {
  if (buffer instanceof SimulatorBuffer) return buffer;
  throw new ArgumentError("the simulator was given a buffer of another device");
}

function scalarValue(element: ElementType, value: number | bigint): number | bigint | boolean {
  switch (element.name) {
    case "bool":
      return Boolean(value);
    case "i64":
      return BigInt.asIntN(64, BigInt(value));
    case "u64":
      return BigInt.asUintN(64, BigInt(value));
    case "i32":
      return Number(value) | 0;
    case "u32":
      return Number(value) >>> 0;
    case "f32":
      return Math.fround(Number(value));
    default:
      return Number(value);
  }
}

/** Bindings by parameter id. */
export function bindArguments(
  kernel: KernelIr,
  slots: readonly ArgumentSlot[],
  values: readonly ArgumentValue[],
): readonly ArgumentBinding[] {
  if (slots.length !== values.length) {
    throw new ArgumentError(
      `kernel ${kernel.name} takes ${slots.length} native arguments; ${values.length} were given`,
    );
  }
  const bindings: ArgumentBinding[] = [];
  slots.forEach((slot, position) => {
    const value = values[position]!;
    bind(kernel, bindings, slot, value);
  });
  return bindings;
}

function wrongKind(kernel: KernelIr, slot: ArgumentSlot, value: ArgumentValue): ArgumentError {
  return new ArgumentError(
    `kernel ${kernel.name}: argument of parameter ${slot.parameter} is a ${value.kind}, not a ${slot.kind}`,
  );
}

function bind(kernel: KernelIr, bindings: ArgumentBinding[], slot: ArgumentSlot, value: ArgumentValue): void {
  switch (slot.kind) {
    case "pointer": {
      if (value.kind !== "pointer") throw wrongKind(kernel, slot, value);
      const parameter = kernel.parameters.find(({ id }) => id === slot.parameter) as BufferParameter;
      const size = byteSize(parameter.element as StorageType);
      if (value.byteOffset % size !== 0) {
        throw new ArgumentError(
          `array ${parameter.name} begins at byte ${value.byteOffset} of its buffer, no multiple of the ${size} bytes of ${parameter.element.name}`,
        );
      }
      bindings[slot.parameter] = new BufferBinding(
        parameter,
        asBuffer(value.buffer),
        value.byteOffset,
        value.byteLength,
      );
      return;
    }
    case "size":
    case "stride": {
      if (value.kind !== "number") throw wrongKind(kernel, slot, value);
      const binding = bindings[slot.parameter] as BufferBinding;
      (slot.kind === "size" ? binding.sizes : binding.strides)[slot.dimension] = Number(value.value);
      return;
    }
    case "scalar":
      if (value.kind !== "number") throw wrongKind(kernel, slot, value);
      bindings[slot.parameter] = scalarValue(slot.element, value.value);
      return;
    case "tensorMap":
      if (value.kind !== "tensorMap") throw wrongKind(kernel, slot, value);
      bindings[slot.parameter] = new TensorBinding(slot.map, value.view);
      return;
    default:
      slot satisfies never;
  }
}
