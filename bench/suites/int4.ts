/**
 * @file Products with 4-bit weights of a few rows, as a language model's layers make them: four layers' weights in rotation, so
 * that none is still in the cache, in a graph, so that launches cost what they cost there. The limit is the time in which
 * the memory brings the weights. Beside it the product with bf16 weights by cuBLASLt, which reads four times as much.
 */
import { planGemmInt4 } from "tilewright/gemm";
import { bf16, u32 } from "tilewright/lang";
import { type Int4Group, Int4Weights } from "../../src/gemm/quantised/int4-weights.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice, type Device } from "../../src/runtime/device.ts";
import type { WorkItem } from "../harness.ts";
import { CublasLt } from "../peers/cublaslt.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

const layers = 4;
const launches = 32;

interface Shape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly group?: Int4Group;
}

/** Weights of any nibbles whatever, with scales near 1/8. */
function someWeights(device: Device, { n, k, group = 128 }: Shape, seed: number): Int4Weights {
  let state = seed;
  const random = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  const words = Uint32Array.from({ length: (n * k) / 8 }, random);
  // Two bf16 numbers from 1/8 to 1/4.
  const scales = Uint32Array.from(
    { length: (n * k) / group / 2 },
    () => 0x3e003e00 | (random() & 0x007f007f),
  );
  return new Int4Weights(
    k,
    n,
    group,
    bf16,
    device.array(u32, [n / 16, k / 64, 32, 4], words),
    device.array(u32, [n / 16, k / group, 8], scales),
  );
}

function item(backend: CudaBackend, shape: Shape): WorkItem {
  const { m, n, k, group = 128 } = shape;
  return {
    id: `int4 weights of ${k} x ${n}, groups of ${group}, by ${m} rows of bf16`,
    bytes: launches * ((n * k) / 2 + (2 * n * k) / group),
    limit: "memory",
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const x = device.array(bf16, [m, k], normalValues(m * k, 1));
      const weights = Array.from({ length: layers }, (_, i) => someWeights(device, shape, i + 1));
      const plans = await Promise.all(weights.map((one) => planGemmInt4(x, one)));
      const library = new CublasLt(backend);
      const [dense, d] = [device.empty(bf16, [layers, k, n]), device.empty(bf16, [m, n])];
      const peers = await Promise.all(
        weights.map((_, i) =>
          library.matmul({
            m,
            n,
            k,
            a: { type: "bf16", buffer: x.allocation.buffer, leading: k },
            b: { type: "bf16", buffer: dense.allocation.buffer, byteOffset: 2 * i * k * n, leading: n },
            d: { type: "bf16", buffer: d.allocation.buffer, leading: n },
            compute: "f32",
          }),
        ),
      );
      const rotation = (run: (layer: number) => void) =>
        device.capture(() => {
          for (let launch = 0; launch < launches; launch++) run(launch % layers);
        });
      const ours = rotation((layer) => plans[layer]!.run());
      const theirs = rotation((layer) => peers[layer]!.enqueue());
      const { compiled } = plans[0]!;
      return {
        contenders: [
          {
            name: "ours",
            role: "ours",
            note: `${compiled?.registersPerThread} registers, ${compiled?.spilledBytes} bytes spilled`,
            enqueue: () => ours.launch(),
          },
          {
            name: "cuBLASLt, bf16 weights",
            role: "peer",
            note: peers[0]!.note,
            enqueue: () => theirs.launch(),
          },
        ],
        dispose: () => {
          for (const one of [ours, theirs, ...plans, ...peers, library, ...weights]) one.dispose();
          for (const array of [x, dense, d, ...plans.map((plan) => plan.d)]) array.dispose();
        },
      };
    },
  };
}

export const int4Suite: Suite = {
  name: "int4",
  items: (backend) =>
    [
      { m: 16, n: 8192, k: 8192 },
      { m: 16, n: 28_672, k: 8192 },
      { m: 1, n: 8192, k: 8192 },
      { m: 32, n: 8192, k: 8192 },
      { m: 16, n: 8192, k: 8192, group: 64 as const },
    ].map((shape) => item(backend, shape)),
};
