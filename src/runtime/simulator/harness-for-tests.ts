/** @file Runs hand-built kernels on a simulator, for tests: arrays in, arrays out, faults as errors. */
import { generateJavaScript } from "../../codegen/javascript/index.ts";
import type { KernelIr } from "../../ir/nodes.ts";
import { argumentSlots } from "../../ir/parameters.ts";
import type { ArgumentValue, Executable, PreparedLaunch, TensorView } from "../backend.ts";
import { createSimulatorBackend, type SimulatorBackend, type SimulatorOptions } from "./backend.ts";

/** An argument by parameter name: bytes of an array, a number, or an array seen through a tensor map. */
export type TestArgument =
  | ArrayBufferView
  | number
  | bigint
  | {
      readonly array: ArrayBufferView;
      readonly sizes: readonly number[];
      readonly strides: readonly number[];
    };

export interface TestRun {
  readonly kernel: KernelIr;
  readonly grid?: readonly [number, number, number];
  readonly args?: Readonly<Record<string, TestArgument>>;
  /** Sizes and strides of array parameters of higher rank. */
  readonly shapes?: Readonly<
    Record<string, { readonly sizes: readonly number[]; readonly strides: readonly number[] }>
  >;
  readonly options?: SimulatorOptions;
}

/** A kernel loaded with its arguments. */
export interface Loaded {
  readonly backend: SimulatorBackend;
  readonly executable: Executable;
  readonly prepared: PreparedLaunch;
  /** Brings the arrays back from the device. */
  readonly fetch: () => Promise<void>;
}

function bytesOf(view: ArrayBufferView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** Loads a kernel and its arguments; arrays are written to device memory, one buffer for each distinct array. */
export async function load({ kernel, args = {}, shapes = {}, options = {} }: TestRun): Promise<Loaded> {
  const backend = createSimulatorBackend(options);
  const buffers = new Map<ArrayBufferView, ReturnType<SimulatorBackend["allocate"]>>();
  const upload = (array: ArrayBufferView): ReturnType<SimulatorBackend["allocate"]> => {
    let buffer = buffers.get(array);
    if (buffer === undefined) {
      buffer = backend.allocate(array.byteLength);
      backend.write(buffer, 0, bytesOf(array));
      buffers.set(array, buffer);
    }
    return buffer;
  };
  const slots = argumentSlots(kernel);
  const values = slots.map((slot): ArgumentValue => {
    const { name } = kernel.parameters.find(({ id }) => id === slot.parameter)!;
    const argument = args[name];
    switch (slot.kind) {
      case "pointer": {
        const array = argument as ArrayBufferView;
        return { kind: "pointer", buffer: upload(array), byteOffset: 0, byteLength: array.byteLength };
      }
      case "size":
        return {
          kind: "number",
          value: shapes[name]?.sizes[slot.dimension] ?? (argument as Uint8Array).length,
        };
      case "stride":
        return { kind: "number", value: shapes[name]?.strides[slot.dimension] ?? 1 };
      case "scalar":
        return { kind: "number", value: argument as number };
      default: {
        const { array, sizes, strides } = argument as { array: ArrayBufferView } & Pick<
          TensorView,
          "sizes" | "strides"
        >;
        return {
          kind: "tensorMap",
          map: slot.map,
          view: { buffer: upload(array), byteOffset: 0, sizes, strides },
        };
      }
    }
  });
  const { text } = generateJavaScript(kernel, backend.facts, backend.mode);
  const executable = await backend.load({ name: kernel.name, text, hash: text, ir: kernel, slots });
  const fetch = async (): Promise<void> => {
    for (const [array, buffer] of buffers) await backend.read(buffer, 0, bytesOf(array));
  };
  return { backend, executable, prepared: backend.prepare(executable, values), fetch };
}

/** Runs a kernel once. The arrays given hold the results afterwards. @throws SimulationError */
export async function run(test: TestRun): Promise<SimulatorBackend> {
  const { backend, executable, prepared, fetch } = await load(test);
  backend.launch(executable, test.grid ?? [1, 1, 1], prepared);
  await fetch();
  await backend.sync();
  return backend;
}
