/** @file Arguments into bindings and the uniform block, and launches. */
import { ArgumentError, CompileError, DisposedError } from "../../errors.ts";
import type { BlockWord, ShaderBinding } from "../../target/webgpu.ts";
import { toBits } from "../../types/bits.ts";
import { byteSize, type ElementType, type StorageType } from "../../types/types.ts";
import type { ArgumentValue, Module, PreparedLaunch } from "../backend.ts";
import { checkedRange, type WebgpuBuffer } from "./buffers.ts";
import { bindingAlignment, bufferUsage } from "./constants.ts";
import type { LoadedShader, Pipelines } from "./pipelines.ts";
import type { CommandQueue } from "./queue.ts";

/** An array argument. */
interface PointerArgument {
  readonly slot: number;
  readonly buffer: WebgpuBuffer;
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly writable: boolean;
}

/** A part of a buffer that a binding shows. */
interface BoundRange {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly size: number;
}

type Grid = readonly [number, number, number];

export class WebgpuPreparedLaunch implements PreparedLaunch {
  #disposed = false;
  #args: GPUBuffer | undefined;
  #group: GPUBindGroup | undefined;
  #grid: Grid | undefined;

  constructor(
    private readonly queue: CommandQueue,
    readonly module: Module,
    private readonly loaded: LoadedShader,
    private readonly words: Uint32Array,
    private readonly ranges: readonly BoundRange[],
    private readonly pointers: readonly PointerArgument[],
  ) {}

  /** The bindings for a grid, whose extents are in the uniform block. */
  #bindGroup(grid: Grid, fold: number): GPUBindGroup {
    if (this.#group !== undefined && this.#grid!.every((extent, axis) => extent === grid[axis]))
      return this.#group;
    const { device } = this.queue;
    if (this.#args !== undefined) this.queue.retire(this.#args);
    const size = Math.ceil((4 * this.words.length) / 16) * 16;
    const args = device.createBuffer({ size, usage: bufferUsage.uniform, mappedAtCreation: true });
    this.loaded.shader.block.forEach((word, i) => {
      if (word.kind === "grid") this.words[i] = grid[word.axis];
      else if (word.kind === "fold") this.words[i] = fold;
    });
    new Uint32Array(args.getMappedRange()).set(this.words);
    args.unmap();
    const resources = [...this.ranges, { buffer: args }];
    this.#args = args;
    this.#grid = grid;
    this.#group = device.createBindGroup({
      layout: this.loaded.groupLayout,
      entries: resources.map((resource, binding) => ({ binding, resource })),
    });
    return this.#group;
  }

  /** Enqueues. Grids longer than an axis may be are folded over two. */
  launch(grid: Grid, perAxis: number): void {
    const { name } = this.module;
    if (this.#disposed) throw new DisposedError(`kernel ${name}: the prepared launch was disposed`);
    const freed = this.pointers.find(({ buffer }) => buffer.freed);
    if (freed !== undefined)
      throw new DisposedError(`kernel ${name}: an array that it was prepared for was disposed`);
    const [x, y, z] = grid;
    const blocks = x * y * z;
    const folds = grid.some((extent) => extent > perAxis);
    const down = Math.ceil(blocks / perAxis);
    if (folds && (down > perAxis || blocks >= 2 ** 32)) {
      throw new ArgumentError(
        `kernel ${name}: ${blocks} blocks in one launch; WebGPU takes ${perAxis ** 2} at most`,
      );
    }
    const across = Math.ceil(blocks / down);
    const group = this.#bindGroup(grid, folds ? across : 0);
    const pass = this.queue.pass(`kernel ${name}`);
    pass.setPipeline(this.loaded.pipeline);
    pass.setBindGroup(0, group);
    if (folds) pass.dispatchWorkgroups(across, down);
    else pass.dispatchWorkgroups(x, y, z);
  }

  /** The same arguments, to be disposed of separately. */
  copy(): WebgpuPreparedLaunch {
    const { queue, module, loaded, words, ranges, pointers } = this;
    return new WebgpuPreparedLaunch(queue, module, loaded, words.slice(), ranges, pointers);
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    if (this.#args !== undefined) this.queue.retire(this.#args);
  }
}

/** What binding arguments asks of the device. */
export interface LaunchContext {
  readonly owner: object;
  readonly queue: CommandQueue;
  readonly pipelines: Pipelines;
  readonly bindingBytes: number;
}

/** @throws ArgumentError, DisposedError naming kernel and parameter */
export function prepare(
  context: LaunchContext,
  module: Module,
  loaded: LoadedShader,
  values: readonly ArgumentValue[],
): WebgpuPreparedLaunch {
  const pointers = pointerArguments(context, module, loaded, values);
  const groups = sharingGroups(pointers);
  const shader = groups.length === 0 ? loaded : context.pipelines.merged(module.hash, loaded.shader, groups);
  const ranges = shader.shader.bindings.map((binding) =>
    boundRange(
      context,
      module,
      binding,
      pointers.filter(({ slot }) => binding.slots.includes(slot)),
    ),
  );
  const words = Uint32Array.from(shader.shader.block, (word) =>
    wordOf(word, module, values, (slot) => {
      const binding = shader.shader.bindings.findIndex(({ slots }) => slots.includes(slot));
      const pointer = pointers.find((one) => one.slot === slot)!;
      return (pointer.byteOffset - ranges[binding]!.offset) / byteSize(elementOf(module, slot));
    }),
  );
  return new WebgpuPreparedLaunch(context.queue, module, shader, words, ranges, pointers);
}

function parameterName(module: Module, slot: number): string {
  const id = module.slots[slot]!.parameter;
  return module.ir.parameters.find((parameter) => parameter.id === id)!.name;
}

function elementOf(module: Module, slot: number): ElementType {
  const id = module.slots[slot]!.parameter;
  return module.ir.parameters.find((parameter) => parameter.id === id)!.element;
}

function pointerArguments(
  context: LaunchContext,
  module: Module,
  { shader }: LoadedShader,
  values: readonly ArgumentValue[],
): readonly PointerArgument[] {
  return shader.bindings.flatMap(({ slots, writable, alignment }) =>
    slots.map((slot): PointerArgument => {
      const value = values[slot];
      const what = `kernel ${module.name}: argument ${parameterName(module, slot)}`;
      if (value?.kind !== "pointer") throw new CompileError(`${what} is no array`);
      const { byteOffset, byteLength } = value;
      const buffer = checkedRange(context.owner, value.buffer, byteOffset, byteLength, what);
      if (byteOffset % alignment !== 0) {
        throw new ArgumentError(
          `${what} begins at byte ${byteOffset} of its memory; the kernel reads vectors of ${alignment} bytes and needs a multiple of that`,
        );
      }
      return { slot, buffer, byteOffset, byteLength, writable };
    }),
  );
}

/** Arrays in one buffer of which some array is written: WebGPU binds a buffer once then. */
function sharingGroups(pointers: readonly PointerArgument[]): readonly (readonly number[])[] {
  const byBuffer = new Map<GPUBuffer, PointerArgument[]>();
  for (const pointer of pointers) {
    const known = byBuffer.get(pointer.buffer.gpuBuffer);
    if (known === undefined) byBuffer.set(pointer.buffer.gpuBuffer, [pointer]);
    else known.push(pointer);
  }
  return [...byBuffer.values()]
    .filter((group) => group.length > 1 && group.some(({ writable }) => writable))
    .map((group) => group.map(({ slot }) => slot));
}

function boundRange(
  { bindingBytes }: LaunchContext,
  module: Module,
  { slots }: ShaderBinding,
  pointers: readonly PointerArgument[],
): BoundRange {
  const buffer = pointers[0]!.buffer.gpuBuffer;
  const start = Math.min(...pointers.map(({ byteOffset }) => byteOffset));
  const end = Math.max(...pointers.map(({ byteOffset, byteLength }) => byteOffset + byteLength));
  const offset = Math.min(
    Math.floor(start / bindingAlignment) * bindingAlignment,
    Math.floor((buffer.size - 16) / bindingAlignment) * bindingAlignment,
  );
  const size = Math.min(buffer.size - offset, Math.max(16, Math.ceil((end - offset) / 16) * 16));
  if (size > bindingBytes) {
    const names = slots.map((slot) => parameterName(module, slot)).join(" and ");
    throw new ArgumentError(
      `kernel ${module.name}: argument ${names} spans ${size} bytes; this WebGPU device binds at most ${bindingBytes} at once. Work on slices`,
    );
  }
  return { buffer, offset, size };
}

function wordOf(
  word: BlockWord,
  module: Module,
  values: readonly ArgumentValue[],
  baseOf: (slot: number) => number,
): number {
  switch (word.kind) {
    case "base":
      return baseOf(word.slot);
    case "slot": {
      const value = values[word.slot];
      if (value?.kind !== "number")
        throw new CompileError(`kernel ${module.name}: argument ${word.slot} is no number`);
      return scalarBits(
        word.element,
        value.value,
        `kernel ${module.name}: argument ${parameterName(module, word.slot)}`,
      );
    }
    case "grid":
    case "fold":
    case "zero":
      return 0;
    default:
      return word satisfies never;
  }
}

/** A number as the shader's block has it. Positions are 32-bit in WGSL. */
function scalarBits(element: ElementType, value: number | bigint, what: string): number {
  switch (element.name) {
    case "bool":
      return Number(value) === 0 ? 0 : 1;
    case "index":
      if (value < -(2 ** 31) || value >= 2 ** 32) {
        throw new ArgumentError(`${what} is ${value}; positions on WebGPU are below 2^32`);
      }
      return Number(value) >>> 0;
    case "i32":
    case "u32":
      return Number(value) >>> 0;
    default:
      return Number(toBits(element as StorageType, value));
  }
}
