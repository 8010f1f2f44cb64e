/** @file Device memory: array buffers. */
import type { StorageType } from "../../types/types.ts";
import type { BackendBuffer } from "../backend.ts";

export type TypedArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** An allocation, filled with ones bits so that reading before writing shows. */
export class SimulatorBuffer implements BackendBuffer {
  readonly data: ArrayBuffer;
  readonly octets: Uint8Array;
  freed = false;
  constructor(readonly bytes: number) {
    this.data = new ArrayBuffer(Math.max(16, Math.ceil(bytes / 16) * 16));
    this.octets = new Uint8Array(this.data).fill(0xff);
  }
}

/** The typed array of a storage type over a part of memory; f16, bf16 and fp8 are their bits. */
export function typedView(
  type: StorageType,
  data: ArrayBuffer,
  byteOffset: number,
  length: number,
): TypedArray {
  switch (type.name) {
    case "f16":
    case "bf16":
    case "u16":
      return new Uint16Array(data, byteOffset, length);
    case "e4m3":
    case "e5m2":
    case "u8":
      return new Uint8Array(data, byteOffset, length);
    case "i8":
      return new Int8Array(data, byteOffset, length);
    case "i16":
      return new Int16Array(data, byteOffset, length);
    case "i32":
      return new Int32Array(data, byteOffset, length);
    case "u32":
      return new Uint32Array(data, byteOffset, length);
    case "f32":
      return new Float32Array(data, byteOffset, length);
    case "f64":
      return new Float64Array(data, byteOffset, length);
    case "i64":
      return new BigInt64Array(data, byteOffset, length);
    case "u64":
      return new BigUint64Array(data, byteOffset, length);
    default:
      return type satisfies never;
  }
}
