/** @file `.npy` files, numpy's array format: read and written in any environment. Files on disk: `node.ts`. */

export { type ByteSink, type ByteSource, type MemorySink, memorySink, memorySource } from "./bytes.ts";
export type { ByteOrder } from "./descr.ts";
export {
  type AxisOrder,
  describeNpy,
  type NpyDescription,
  type NpyHeader,
  type NpyReadOptions,
  type NpyVersion,
  parseHeader,
} from "./header.ts";
export type { HeaderFields } from "./header-literal.ts";
export { type NpyArray, type NpyChunk, readNpy, readNpyChunks } from "./read.ts";
export { type NpyInput, type NpyShape, type NpyWriteOptions, writeNpy, writeNpyChunks } from "./write.ts";
