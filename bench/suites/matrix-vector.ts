/**
 * @file A matrix by one vector or a few, beside cuBLASLt's product and the driver's copy of the matrix's bytes. The matrix
 * is larger than the cache, and contenders take turns on two of it.
 */
import { type GemmOptions, type GemmPlan, planGemm } from "tilewright/gemm";
import { byteSize, types } from "tilewright/lang";
import type { DeviceArray } from "../../src/runtime/array.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice, type Device } from "../../src/runtime/device.ts";
import type { Contender, WorkItem } from "../harness.ts";
import { CublasLt, type Matrix } from "../peers/cublaslt.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

interface Options {
  readonly type: "f16" | "bf16" | "f32" | "f64";
  readonly size: number;
  readonly vectors: number;
  /** The matrix row-major ("N") or column-major ("T"). */
  readonly order: "N" | "T";
  readonly padding?: number;
  /** Other ways beside what the library takes. */
  readonly ways?: readonly { readonly name: string; readonly options: GemmOptions }[];
}

const copies = 2;
const distinct = 1_000_003;

function filled(
  device: Device,
  type: Options["type"],
  shape: readonly [number, number],
  seed: number,
): DeviceArray {
  const values = normalValues(distinct, seed);
  const host = new Float32Array(shape[0] * shape[1]);
  for (let i = 0; i < host.length; i += distinct)
    host.set(values.subarray(0, Math.min(distinct, host.length - i)), i);
  return device.array(types[type], shape, host);
}

function item(backend: CudaBackend, { type, size, vectors, order, padding = 0, ways }: Options): WorkItem {
  const bytes = size * size * byteSize(types[type]);
  const suffix = padding === 0 ? "" : `, leading dimension ${size + padding}`;
  return {
    id: `${type} ${size} x ${size} ${order} by ${vectors}${suffix}`,
    operations: 2 * size * size * vectors,
    bytes,
    limit: "memory",
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const leading = size + padding;
      const wholes = Array.from({ length: copies }, (_, i) => filled(device, type, [size, leading], i + 1));
      const x = filled(device, type, [vectors, size], 9);
      const [ours, theirs] = [0, 1].map(() => device.empty(types[type], [size, vectors])) as [
        DeviceArray,
        DeviceArray,
      ];
      const target = device.empty(types[type], [size, leading]);
      const plans: GemmPlan[] = [];
      const contenders: Contender[] = [];
      for (const { name, options } of [{ name: "ours", options: {} }, ...(ways ?? [])]) {
        const own: GemmPlan[] = [];
        for (const whole of wholes) {
          const view = whole.slice([], [0, size]);
          own.push(
            await planGemm(order === "T" ? view.transposed : view, x.transposed, { ...options, d: ours }),
          );
        }
        plans.push(...own);
        const [{ kind, compiled }] = own as [GemmPlan];
        const { block, warps, splitK = 1 } = kind.params;
        contenders.push({
          name,
          role: "ours",
          note: `${kind.schedule}, block ${Object.values(block).join(" x ")}, warps ${Object.values(warps).join(" x ")}, K in ${splitK}, ${compiled?.registersPerThread} registers, ${compiled?.spilledBytes} bytes spilled`,
          enqueue: (turn) => own[turn % copies]?.run(),
        });
      }
      const library = new CublasLt(backend);
      const matrix = (whole: DeviceArray): Matrix => ({
        type,
        buffer: whole.allocation.buffer,
        leading,
        transposed: order === "T",
      });
      const peers = await Promise.all(
        wholes.map((whole) =>
          library.matmul({
            m: size,
            n: vectors,
            k: size,
            a: matrix(whole),
            b: { type, buffer: x.allocation.buffer, leading: size, transposed: true },
            d: { type, buffer: theirs.allocation.buffer, leading: vectors },
            compute: type === "f64" ? "f64" : "f32",
          }),
        ),
      );
      contenders.push({
        name: "cuBLASLt",
        role: "peer",
        note: `${library.version}, ${peers[0]?.note}`,
        enqueue: (turn) => peers[turn % copies]?.enqueue(),
      });
      contenders.push({
        name: "cuMemcpyDtoDAsync of half the bytes",
        role: "reference",
        note: "reads half of the matrix and writes as much",
        enqueue: (turn) => {
          const from = wholes[turn % copies] as DeviceArray;
          backend.copy(from.allocation.buffer, 0, target.allocation.buffer, 0, bytes / 2);
        },
      });
      return {
        contenders,
        dispose: () => {
          for (const peer of peers) peer.dispose();
          library.dispose();
          for (const plan of plans) plan.dispose();
          for (const array of [...wholes, x, ours, theirs, target]) array.dispose();
        },
      };
    },
  };
}

const tiles = [{ name: "tiles", options: { schedule: "register-staged" } }] as const;

export const matrixVectorSuite: Suite = {
  name: "matrix-vector",
  items: (backend) =>
    [
      ...(["f16", "f32"] as const).flatMap((type) =>
        (["N", "T"] as const).flatMap((order): readonly Options[] => [
          { type, size: 8192, vectors: 1, order, ways: tiles },
          { type, size: 8192, vectors: 4, order },
          { type, size: 8192, vectors: 8, order, ways: tiles },
          { type, size: 8192, vectors: 1, order, padding: 3 },
          { type, size: 16384, vectors: 1, order },
        ]),
      ),
      { type: "bf16", size: 8192, vectors: 1, order: "N" } as const,
      { type: "f64", size: 8192, vectors: 1, order: "N" } as const,
    ].map((options) => item(backend, options)),
};
