/**
 * @file The gate of the foundation: the traced Hopper GEMM of test/language beside one written by hand in PTX, on one
 * stream, turn by turn.
 *
 *     TILEWRIGHT_REFERENCE_PTX=reference.ptx npx tsx --conditions=tilewright-source bench/gate-hopper.ts [folder for results]
 *
 * The reference's entry is `gemm(tmA, tmB, D, M, N, K)`: two tensor maps over f16 (boxes {64, 128} and {64, 256}, 128-byte
 * swizzle), an address and three u32; 384 threads, 196,672 bytes of dynamic shared memory, as many blocks as
 * multiprocessors. Without the variable the traced kernel is measured alone.
 */
import { readFileSync } from "node:fs";
import { f16 } from "tilewright/lang";
import { generatePtx } from "../src/codegen/ptx/index.ts";
import type { KernelIr, TensorMapParameter } from "../src/ir/nodes.ts";
import { verify } from "../src/ir/verifier.ts";
import { optimise } from "../src/passes/index.ts";
import type { ArgumentValue, BackendBuffer } from "../src/runtime/backend.ts";
import {
  type CudaBackend,
  createCudaBackend,
  isUnavailable,
  type PtxKernel,
} from "../src/runtime/cuda/index.ts";
import { decode } from "../src/types/host.ts";
import { hopperGemm } from "../test/language/hopper-gemm.ts";
import { environment } from "./environment.ts";
import { measure, type WorkItem } from "./harness.ts";
import { randomBuffer } from "./random.ts";
import { formatItem, itemResult, ResultStore } from "./results.ts";

const sizes = [4096, 8192];
const rounds = 24;
const rowsChecked = 12;

interface Gemm {
  readonly name: string;
  readonly role: "ours" | "peer";
  readonly kernel: PtxKernel;
}

const backend = await createCudaBackend();
if (isUnavailable(backend)) throw new Error(`${backend.reason} ${backend.remedy}`);
try {
  const gemms = [traced(backend), ...reference(backend, process.env.TILEWRIGHT_REFERENCE_PTX)];
  for (const size of sizes) await compare(backend, gemms, size);
} finally {
  backend.dispose();
}

function traced(on: CudaBackend): Gemm {
  const ir = hopperGemm.trace(on.facts);
  verify(ir);
  const optimised: KernelIr = optimise(ir, on.facts);
  const program = on.loadPtx(generatePtx(optimised, on.facts).text, ir.name);
  const kernel = program.kernel(ir.name, shape(optimised.sharedBytes));
  console.log(
    `traced: ${kernel.function.registersPerThread} registers, ${kernel.function.localBytes} bytes spilled`,
  );
  return { name: "traced", role: "ours", kernel };
}

function reference(on: CudaBackend, path: string | undefined): readonly Gemm[] {
  if (path === undefined || path === "") return [];
  const kernel = on.loadPtx(readFileSync(path, "utf8"), "reference").kernel("gemm", shape(196_672));
  return [{ name: "written by hand", role: "peer", kernel }];
}

function shape(dynamicSharedBytes: number): Parameters<ReturnType<CudaBackend["loadPtx"]>["kernel"]>[1] {
  return {
    parameters: ["tensorMap", "tensorMap", "pointer", "i32", "i32", "i32"],
    block: [384, 1, 1],
    dynamicSharedBytes,
  };
}

async function compare(on: CudaBackend, gemms: readonly Gemm[], n: number): Promise<void> {
  const bytes = 2 * n * n;
  const a = randomBuffer(on, f16, n * n, 1);
  const b = randomBuffer(on, f16, n * n, 2);
  const d = on.allocate(bytes);
  const values = launchValues(a, b, d, n);
  const launches = gemms.map(({ name, role, kernel }) => {
    const prepared = kernel.prepare(values);
    const blocks = on.facts.machine.multiprocessors;
    return { name, role, enqueue: () => kernel.launch([blocks, 1, 1], prepared) };
  });
  for (const { name, enqueue } of launches) {
    on.fill(d, 0, bytes, 0xffffffff);
    enqueue();
    console.log(`${name}, ${n}: ${await check(on, a, b, d, n)}`);
  }
  const summaries = await measure(on, launches, "device", {
    rounds,
    sampleSeconds: 5e-3,
    warmUpSeconds: 0.5,
  });
  const item: WorkItem = {
    id: `f16 ${n} x ${n} x ${n}, A·Bᵀ`,
    operations: 2 * n ** 3,
    limit: "f16",
    prepare: () => Promise.reject(new Error("prepared already")),
  };
  const result = itemResult(item, launches, summaries, environment(on));
  console.log(formatItem(item.id, result));
  new ResultStore(process.argv[2] ?? "bench/results", "gate-hopper", on.name).put(item.id, result);
  for (const buffer of [a, b, d]) on.free(buffer);
}

function launchValues(
  a: BackendBuffer,
  b: BackendBuffer,
  d: BackendBuffer,
  n: number,
): readonly ArgumentValue[] {
  const tensor = (buffer: BackendBuffer, rows: number, id: number): ArgumentValue => {
    const map: TensorMapParameter = {
      kind: "tensorMap",
      id,
      name: `map${id}`,
      element: f16,
      rank: 2,
      box: [64, rows],
      swizzle: 128,
    };
    return { kind: "tensorMap", map, view: { buffer, byteOffset: 0, sizes: [n, n], strides: [1, n] } };
  };
  return [
    tensor(a, 128, 0),
    tensor(b, 256, 1),
    { kind: "pointer", buffer: d, byteOffset: 0, byteLength: 2 * n * n },
    ...[n, n, n].map((value): ArgumentValue => ({ kind: "number", value })),
  ];
}

/** Compares some rows of D, first and last among them, with f64 sums, and looks for poison in all. @throws Error */
async function check(
  on: CudaBackend,
  a: BackendBuffer,
  b: BackendBuffer,
  d: BackendBuffer,
  n: number,
): Promise<string> {
  const [left, right, got] = [await read(on, a, n * n), await read(on, b, n * n), await read(on, d, n * n)];
  const poison = got.findIndex(Number.isNaN);
  if (poison >= 0) throw new Error(`element ${poison} was not written`);
  let worst = 0;
  for (let sample = 0; sample < rowsChecked; sample++) {
    // Odd steps, so that the rows come from all lanes, warps and tiles.
    const row = sample === rowsChecked - 1 ? n - 1 : (sample * (2 * Math.floor(n / rowsChecked / 2) - 1)) % n;
    const rowOfA = left.subarray(row * n, (row + 1) * n);
    for (let column = 0; column < n; column++) {
      const rowOfB = right.subarray(column * n, (column + 1) * n);
      let [sum, magnitude] = [0, 0];
      for (let i = 0; i < n; i++) {
        const product = rowOfA[i]! * rowOfB[i]!;
        sum += product;
        magnitude += Math.abs(product);
      }
      const error = Math.abs(got[row * n + column]! - sum);
      // Half a unit of f16, and sums in f32 of n terms.
      const allowed = 2 ** -11 * Math.abs(sum) * 1.01 + 2 ** -18 * magnitude;
      if (!(error <= allowed))
        throw new Error(`(${row}, ${column}): ${sum} expected, got ${got[row * n + column]}`);
      worst = Math.max(worst, error / magnitude);
    }
  }
  return `right, largest error / Σ|a||b| ${worst.toExponential(1)} over ${rowsChecked} rows`;
}

async function read(on: CudaBackend, buffer: BackendBuffer, count: number): Promise<Float32Array> {
  const raw = new Uint16Array(count);
  await on.read(buffer, 0, new Uint8Array(raw.buffer));
  return decode(f16, raw) as Float32Array;
}
