/**
 * @file A launch's arguments: checked against the kernel's parameters, then turned into the values of its argument
 * slots. Nothing that fails here reaches a device.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../errors.ts";
import type { ArgumentSlot } from "../ir/parameters.ts";
import type {
  ParameterDescriptor,
  ParameterDescriptors,
  WindowedImages,
  WindowMapDescriptor,
} from "../lang/index.ts";
import { convertValue, fits } from "../types/convert.ts";
import { integerRange } from "../types/integer-range.ts";
import { byteSize, type ElementType, type StorageType } from "../types/types.ts";
import { type Device, DeviceArray } from "./array.ts";
import type { ArgumentValue } from "./backend.ts";
import { formatShape, repeatsElements, span } from "./shape.ts";

/** Which kernel's arguments these are, and where they must live. */
export interface ArgumentContext {
  readonly kernel: string;
  readonly device: Device;
  readonly params: ParameterDescriptors;
}

type AnyArguments = Readonly<Record<string, unknown>>;

/**
 * Checks names, types, ranks, strides and ranges.
 * @throws ArgumentError, ShapeError, TypeMismatchError, DisposedError naming kernel and argument
 */
export function checkArguments(context: ArgumentContext, args: AnyArguments): void {
  const { kernel, params } = context;
  const names = Object.keys(params);
  if (typeof args !== "object" || args === null) {
    throw new ArgumentError(`kernel ${kernel}: args is an object with ${listed(names)}`);
  }
  const missing = names.filter((name) => args[name] === undefined);
  if (missing.length > 0)
    throw new ArgumentError(`kernel ${kernel}: argument ${missing.join(", ")} is not given`);
  const unknown = Object.keys(args).filter((name) => !(name in params));
  if (unknown.length > 0) {
    throw new ArgumentError(
      `kernel ${kernel}: it has no parameter ${unknown.join(", ")}; it has ${listed(names)}`,
    );
  }
  for (const [name, descriptor] of Object.entries(params))
    checkArgument(context, name, descriptor, args[name]);
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? "no parameters" : names.join(", ");
}

function checkArgument(
  context: ArgumentContext,
  name: string,
  descriptor: ParameterDescriptor,
  value: unknown,
): void {
  const what = `kernel ${context.kernel}: argument ${name}`;
  if (!("kind" in descriptor)) {
    checkScalar(what, descriptor, value);
    return;
  }
  if (descriptor.kind === "windowMap") {
    checkWindows(context, what, descriptor, value);
    return;
  }
  const array = checkArray(context, what, descriptor.type, value);
  if (descriptor.kind === "tensorMap") checkTensor(what, array, descriptor.box.length);
  else checkBuffer(what, array, descriptor.rank, descriptor.access);
}

function checkArray(context: ArgumentContext, what: string, type: StorageType, value: unknown): DeviceArray {
  if (!(value instanceof DeviceArray)) {
    throw new ArgumentError(
      `${what} is an array of ${type.name}, made by device.array(${type.name}, shape, values); ${described(value)} was given`,
    );
  }
  const array = value as DeviceArray;
  if (array.type !== type) {
    throw new TypeMismatchError(
      `${what} wants ${type.name}, got ${array.label}; \`convert(array, ${type.name})\` of tilewright/array-ops converts`,
    );
  }
  if (array.device !== context.device) {
    throw new ArgumentError(
      `${what} lives on ${array.device.name}, not on ${context.device.name}; read it there and make an array here`,
    );
  }
  array.check(what);
  return array;
}

function checkBuffer(
  what: string,
  array: DeviceArray,
  rank: number,
  access: "read" | "write" | "readwrite",
): void {
  if (access !== "read" && repeatsElements(array)) {
    throw new ShapeError(
      `${what} is written, and ${array.label} with strides ${formatShape(array.strides)} holds elements more than once`,
    );
  }
  // Rank 0 is bare storage: the kernel brings its own idea of the arrangement.
  if (rank === 0) return;
  checkRank(what, array, rank);
  if (rank === 1 && !array.isContiguous) {
    throw new ShapeError(
      `${what} takes a contiguous array, and ${array.label} has stride ${array.strides[0]}; \`copy(view)\` of tilewright/array-ops makes one, and a parameter of rank 2 takes the view as a matrix with one column`,
    );
  }
}

function checkTensor(what: string, array: DeviceArray, rank: number): void {
  checkRank(what, array, rank);
  if (array.shape[rank - 1]! > 1 && array.strides[rank - 1] !== 1) {
    throw new ShapeError(
      `${what} is a tensor map, whose last dimension must be dense; ${array.label} has strides ${formatShape(array.strides)}`,
    );
  }
}

/** Bounds of the corners of places, and of what is between them, for images of rank 4. */
const corners = { least: -128, greatest: 127 };
const widestStride = 8;

function checkWindows(
  context: ArgumentContext,
  what: string,
  descriptor: WindowMapDescriptor<StorageType>,
  value: unknown,
): void {
  if (typeof value !== "object" || value === null || !("images" in value)) {
    throw new ArgumentError(
      `${what} is images with the places of a filter, { images, lower, upper, strides }; ${described(value)} was given`,
    );
  }
  const given = value as WindowedImages<StorageType>;
  const array = checkArray(context, `${what}.images`, descriptor.type, given.images);
  checkTensor(`${what}.images`, array, 4);
  const within = (name: "lower" | "upper" | "strides", least: number, greatest: number): void => {
    const pair = given[name];
    const isOne = (n: unknown): boolean => Number.isInteger(n) && Number(n) >= least && Number(n) <= greatest;
    if (Array.isArray(pair) && pair.length === 2 && pair.every(isOne)) return;
    throw new ArgumentError(
      `${what}.${name} is two whole numbers, along x and y, from ${least} to ${greatest}; ${JSON.stringify(pair)} was given`,
    );
  };
  within("lower", corners.least, corners.greatest);
  within("upper", corners.least, corners.greatest);
  within("strides", 1, widestStride);
}

function checkRank(what: string, array: DeviceArray, rank: number): void {
  if (array.rank === rank) return;
  const remedy = rank === 1 && array.isContiguous ? `; .reshape([${array.size}]) has it` : "";
  throw new ShapeError(`${what} has rank ${rank}, and ${array.label} has rank ${array.rank}${remedy}`);
}

function checkScalar(what: string, type: ElementType, value: unknown): void {
  const wanted = scalarWanted(type);
  const isOfKind =
    type.class === "bool"
      ? typeof value === "boolean"
      : typeof value === "number" || (typeof value === "bigint" && type.class !== "float");
  if (!isOfKind) throw new ArgumentError(`${what} is ${wanted}; ${described(value)} was given`);
  if (!fits(value as number | bigint | boolean, type)) {
    throw new ArgumentError(`${what} is ${wanted}; ${String(value)} is none`);
  }
}

function scalarWanted(type: ElementType): string {
  if (type.class === "bool") return "true or false";
  const range = integerRange(type);
  return range === undefined
    ? `a number that ${type.name} can hold`
    : `a whole number from ${range.least} to ${range.greatest} (${type.name})`;
}

function described(value: unknown): string {
  if (value === null) return "null";
  if (typeof value === "object") return `an object (${value.constructor?.name ?? "without a class"})`;
  return typeof value === "function" ? "a function" : `the ${typeof value} ${String(value)}`;
}

/** The values of a kernel's argument slots. The arguments have been checked. */
export function argumentValues(
  slots: readonly ArgumentSlot[],
  params: ParameterDescriptors,
  args: AnyArguments,
): readonly ArgumentValue[] {
  // Parameter numbers follow the order of the descriptors.
  const given = Object.keys(params).map((name) => args[name]);
  return slots.map((slot) => slotValue(slot, given[slot.parameter]));
}

function slotValue(slot: ArgumentSlot, given: unknown): ArgumentValue {
  switch (slot.kind) {
    case "scalar":
      return { kind: "number", value: scalarValue(slot.element, given as number | bigint | boolean) };
    case "pointer":
      return pointerValue(given as DeviceArray);
    case "size":
      return { kind: "number", value: (given as DeviceArray).shape[slot.dimension]! };
    case "stride":
      return { kind: "number", value: (given as DeviceArray).strides[slot.dimension]! };
    case "tensorMap": {
      const windowed = slot.map.windows ? (given as WindowedImages<StorageType>) : undefined;
      const array = (windowed?.images ?? given) as DeviceArray;
      return {
        kind: "tensorMap",
        map: slot.map,
        view: {
          ...(windowed && {
            windows: { lower: windowed.lower, upper: windowed.upper, strides: windowed.strides },
          }),
          buffer: array.allocation.buffer,
          byteOffset: array.offset * byteSize(array.type),
          sizes: array.shape.toReversed(),
          strides: tensorStrides(array),
        },
      };
    }
    default:
      return slot satisfies never;
  }
}

/** Innermost first; a dimension of one element steps nowhere, whatever its view says. */
function tensorStrides(array: DeviceArray): readonly number[] {
  return array.strides.map((stride, dimension) => (dimension === array.rank - 1 ? 1 : stride)).reverse();
}

/** The value rounded to its type, so that no target rounds on its own. */
function scalarValue(type: ElementType, value: number | bigint | boolean): number | bigint {
  if (typeof value === "boolean") return value ? 1 : 0;
  switch (type.class) {
    case "float":
      return convertValue(value, type, type) as number;
    case "signed":
    case "unsigned":
      return type.name === "i64" || type.name === "u64" ? BigInt(value) : Number(value);
    default:
      return Number(value);
  }
}

function pointerValue(array: DeviceArray): ArgumentValue {
  const bytes = byteSize(array.type);
  return {
    kind: "pointer",
    buffer: array.allocation.buffer,
    byteOffset: array.offset * bytes,
    byteLength: span(array.shape, array.strides) * bytes,
  };
}
