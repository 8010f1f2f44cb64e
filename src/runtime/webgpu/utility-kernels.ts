/**
 * @file Filling and copying at byte granularity, which the queue itself does in whole words only. Each thread makes whole
 * words of the target; at the two ends it keeps the bytes that are not to change.
 */
import { bindingAlignment, bufferUsage } from "./constants.ts";
import type { CommandQueue } from "./queue.ts";

const text = /* wgsl */ `
struct Range {
  first: u32,
  bytes: u32,
  pattern: u32,
  source_first: u32,
}

@group(0) @binding(0) var<storage, read_write> target_words: array<u32>;
@group(0) @binding(1) var<uniform> range: Range;
@group(0) @binding(2) var<storage, read> source_words: array<u32>;

const threads = 64u;

/// The bytes of a word that lie in the range.
fn kept(word: u32) -> u32 {
  let start = word * 4u;
  let low = max(start, range.first) - start;
  let high = min(start + 4u, range.first + range.bytes) - start;
  return (0xffffffffu << (8u * low)) & select((1u << (8u * high)) - 1u, 0xffffffffu, high == 4u);
}

fn write(word: u32, value: u32) {
  let mask = kept(word);
  if (mask == 0xffffffffu) { target_words[word] = value; } else {
    target_words[word] = (target_words[word] & ~mask) | (value & mask);
  }
}

@compute @workgroup_size(threads)
fn fill_bytes(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let turn = (range.first & 3u) * 8u;
  let value = select((range.pattern << turn) | (range.pattern >> ((32u - turn) & 31u)), range.pattern, turn == 0u);
  let end = (range.first + range.bytes + 3u) / 4u;
  for (var word = range.first / 4u + id.x; word < end; word += groups.x * threads) { write(word, value); }
}

@compute @workgroup_size(threads)
fn shift_bytes(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let end = (range.first + range.bytes + 3u) / 4u;
  for (var word = range.first / 4u + id.x; word < end; word += groups.x * threads) {
    // The first word may begin before the source does; its bytes there are not in the range.
    let byte = i32(word * 4u + range.source_first) - i32(range.first);
    let place = byte >> 2u;
    let shift = u32(byte & 3i) * 8u;
    let low = select(source_words[place] >> shift, 0u, place < 0i);
    let high = source_words[place + 1i] << ((32u - shift) & 31u);
    write(word, select(low | high, low, shift == 0u));
  }
}
`;

const threads = 64;

/** Part of a buffer, for a binding. */
interface Window {
  readonly offset: number;
  readonly size: number;
  /** Position of the wanted byte in the window. */
  readonly first: number;
}

/** The aligned surroundings of a range of bytes, `lead` bytes more before it. */
function windowOf(buffer: GPUBuffer, byteOffset: number, bytes: number, lead = 0): Window {
  const offset = Math.floor(Math.max(0, byteOffset - lead) / bindingAlignment) * bindingAlignment;
  const end = Math.min(buffer.size, Math.ceil((byteOffset + bytes + 4) / 16) * 16);
  return { offset, size: end - offset, first: byteOffset - offset };
}

/** A range is done in pieces that bindings can hold. */
const mostBytes = 2 ** 26;

export class UtilityKernels {
  #pipelines: { readonly fill: GPUComputePipeline; readonly move: GPUComputePipeline } | undefined;
  #layout: GPUBindGroupLayout | undefined;
  #nothing: GPUBuffer | undefined;

  constructor(private readonly queue: CommandQueue) {}

  /** Repeats a 32-bit pattern from `byteOffset` on, lowest byte first. */
  fill(buffer: GPUBuffer, byteOffset: number, bytes: number, pattern: number): void {
    for (let done = 0; done < bytes; done += mostBytes) {
      const part = Math.min(mostBytes, bytes - done);
      this.#run("fill", buffer, byteOffset + done, part, pattern, this.#emptySource(), 0);
    }
  }

  /** Copies between different buffers. */
  move(
    source: GPUBuffer,
    sourceOffset: number,
    target: GPUBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    for (let done = 0; done < bytes; done += mostBytes) {
      const part = Math.min(mostBytes, bytes - done);
      this.#run("move", target, targetOffset + done, part, 0, source, sourceOffset + done);
    }
  }

  #run(
    name: "fill" | "move",
    target: GPUBuffer,
    targetOffset: number,
    bytes: number,
    pattern: number,
    source: GPUBuffer,
    sourceOffset: number,
  ): void {
    const { device } = this.queue;
    const pipeline = this.#pipeline(name);
    const to = windowOf(target, targetOffset, bytes);
    // Words begin up to 3 bytes before the range.
    const from = windowOf(source, sourceOffset, bytes, 4);
    const range = device.createBuffer({ size: 16, usage: bufferUsage.uniform, mappedAtCreation: true });
    new Uint32Array(range.getMappedRange()).set([to.first, bytes, pattern >>> 0, from.first]);
    range.unmap();
    const group = device.createBindGroup({
      layout: this.#layout!,
      entries: [
        { binding: 0, resource: { buffer: target, offset: to.offset, size: to.size } },
        { binding: 1, resource: { buffer: range } },
        { binding: 2, resource: { buffer: source, offset: from.offset, size: from.size } },
      ],
    });
    const pass = this.queue.pass(`a ${name}`);
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    const words = Math.ceil((bytes + 6) / 4);
    pass.dispatchWorkgroups(Math.min(4096, Math.ceil(words / threads)));
    this.queue.retire(range);
  }

  #emptySource(): GPUBuffer {
    this.#nothing ??= this.queue.device.createBuffer({ size: 16, usage: bufferUsage.storage });
    return this.#nothing;
  }

  #pipeline(name: "fill" | "move"): GPUComputePipeline {
    if (this.#pipelines === undefined) {
      const { device } = this.queue;
      const module = device.createShaderModule({ code: text });
      const types: readonly GPUBufferBindingType[] = ["storage", "uniform", "read-only-storage"];
      this.#layout = device.createBindGroupLayout({
        entries: types.map((type, binding) => ({ binding, visibility: 4, buffer: { type } })),
      });
      const layout = device.createPipelineLayout({ bindGroupLayouts: [this.#layout] });
      const make = (entryPoint: string): GPUComputePipeline =>
        device.createComputePipeline({ layout, compute: { module, entryPoint } });
      this.#pipelines = { fill: make("fill_bytes"), move: make("shift_bytes") };
    }
    return this.#pipelines[name];
  }
}
