/**
 * @file onnxruntime-node's WebGPU provider as a peer: chains of MatMul nodes, of whose durations the difference is taken,
 * so that transfers and the start of a run do not count.
 *
 * It is no dependency: `TILEWRIGHT_ONNXRUNTIME` names a folder in which it is installed
 * (`npm install --prefix FOLDER onnxruntime-node`), or it is found beside this repository.
 */
import { createRequire } from "node:module";
import { join } from "node:path";
import { encode } from "../../src/types/host.ts";
import { f16, f32 } from "../../src/types/types.ts";

/** What is used of the package. */
export interface OnnxRuntime {
  readonly InferenceSession: {
    create(model: Uint8Array, options: object): Promise<Session>;
  };
  readonly Tensor: new (type: string, data: unknown, shape: readonly number[]) => unknown;
}

interface Session {
  run(feeds: Readonly<Record<string, unknown>>): Promise<unknown>;
  release(): Promise<void>;
}

/** The package, or why it is not there. */
export function findOnnxRuntime(): OnnxRuntime | string {
  const folder = process.env.TILEWRIGHT_ONNXRUNTIME;
  const from = folder ? join(folder, "package.json") : import.meta.url;
  try {
    return createRequire(from)("onnxruntime-node") as OnnxRuntime;
  } catch (error) {
    return `onnxruntime-node does not load: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`;
  }
}

/** Products of a square X by a square B, one after the other. */
export interface MatMulChain {
  /** Seconds of one product, from one run of the long chain and one of the short. */
  sample(): Promise<number>;
  dispose(): Promise<void>;
}

/** How many products the longer chain has more than the shorter. */
const more = 10;

/** A chain on the WebGPU provider. `values` are X's and B's. */
export async function matMulChain(
  { InferenceSession, Tensor }: OnnxRuntime,
  type: "f32" | "f16",
  size: number,
  values: readonly [ArrayLike<number>, ArrayLike<number>],
): Promise<MatMulChain> {
  const options = { executionProviders: ["webgpu"], logSeverityLevel: 3 };
  const open = (length: number): Promise<Session> =>
    InferenceSession.create(chainModel(type, size, length), options);
  const sessions = [await open(1), await open(1 + more)] as const;
  const tensor = (data: ArrayLike<number>): unknown =>
    new Tensor(type === "f32" ? "float32" : "float16", encode(type === "f32" ? f32 : f16, data), [
      size,
      size,
    ]);
  const feeds = { x: tensor(values[0]), b: tensor(values[1]) };
  const timed = async (session: Session): Promise<number> => {
    const start = performance.now();
    await session.run(feeds);
    return (performance.now() - start) / 1000;
  };
  return {
    sample: async () => {
      const short = await timed(sessions[0]);
      return Math.max(((await timed(sessions[1])) - short) / more, 1e-9);
    },
    dispose: async () => {
      for (const session of sessions) await session.release();
    },
  };
}

// ONNX's protocol buffers (onnx.proto3), as far as a chain of products needs them. -------------------------------------

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

const number = (field: number, value: number): number[] => [...varint(8 * field), ...varint(value)];

function bytes(field: number, content: string | readonly number[]): number[] {
  const held = typeof content === "string" ? [...new TextEncoder().encode(content)] : content;
  return [...varint(8 * field + 2), ...varint(held.length), ...held];
}

function node(operator: string, inputs: readonly string[], output: string): number[] {
  return bytes(1, [
    ...inputs.flatMap((name) => bytes(1, name)),
    ...bytes(2, output),
    ...bytes(3, output),
    ...bytes(4, operator),
  ]);
}

function valueInfo(field: number, name: string, type: "f32" | "f16", shape: readonly number[]): number[] {
  const dimensions = shape.flatMap((extent) => bytes(1, number(1, extent)));
  const tensor = [...number(1, type === "f32" ? 1 : 10), ...bytes(2, dimensions)];
  return bytes(field, [...bytes(1, name), ...bytes(2, bytes(1, tensor))]);
}

/** The largest element of X · B · … · B, which brings one number back. */
function chainModel(type: "f32" | "f16", size: number, length: number): Uint8Array {
  const products = Array.from({ length }, (_, i) =>
    node("MatMul", [i === 0 ? "x" : `y${i - 1}`, "b"], `y${i}`),
  );
  const graph = [
    ...products.flat(),
    ...node("ReduceMax", [`y${length - 1}`], "largest"),
    ...bytes(2, "chain"),
    ...valueInfo(11, "x", type, [size, size]),
    ...valueInfo(11, "b", type, [size, size]),
    ...valueInfo(12, "largest", type, [1, 1]),
  ];
  return Uint8Array.from([...number(1, 8), ...bytes(7, graph), ...bytes(8, number(2, 17))]);
}
