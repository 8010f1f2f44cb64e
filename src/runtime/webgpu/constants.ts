/** @file Flags of the WebGPU specification, as numbers: outside browsers there are no globals that hold them. */

export const bufferUsage = {
  mapRead: 0x1,
  copySource: 0x4,
  copyTarget: 0x8,
  uniform: 0x40,
  storage: 0x80,
  queryResolve: 0x200,
} as const;

export const mapForReading = 0x1;
export const computeStage = 0x4;

/** Offsets of storage bindings are multiples of this or less (`minStorageBufferOffsetAlignment` is at most 256). */
export const bindingAlignment = 256;
