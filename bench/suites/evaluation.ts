/**
 * @file The evaluation of the paper that the GEMM follows (Faingnaert, Besard, De Sutter: "Flexible Performant GEMM Kernels
 * on GPUs", IEEE TPDS 2022), again: a diagonal matrix in a layout of its own against the same matrix written out, and a bias
 * with ReLU fused into the product against the library's own epilogue and against kernels of their own, complex and dual
 * numbers, over sizes.
 */
import { type Algebra, algebraMatrix, bias, complex, diagonal, dual, planGemm, relu } from "tilewright/gemm";
import { block, f16, f32, input, kernel, max, output, thread } from "tilewright/lang";
import type { Device, DeviceArray } from "../../src/runtime/array.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice } from "../../src/runtime/device.ts";
import type { Contender, WorkItem } from "../harness.ts";
import { CublasLt, type MatmulOptions, type MatmulPlan } from "../peers/cublaslt.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

const distinct = 1_000_003;

function square(device: Device, size: number, seed: number): DeviceArray {
  const values = normalValues(distinct, seed);
  const host = new Float32Array(size * size);
  for (let i = 0; i < host.length; i += distinct)
    host.set(values.subarray(0, Math.min(distinct, host.length - i)), i);
  return device.array(f16, [size, size], host);
}

/** A cuBLASLt product of square row-major matrices of f16. */
function theirs(
  library: CublasLt,
  size: number,
  { a, b, d }: { readonly a: DeviceArray; readonly b: DeviceArray; readonly d: DeviceArray },
  more: Partial<MatmulOptions> = {},
): Promise<MatmulPlan> {
  const matrix = ({ allocation }: DeviceArray): MatmulOptions["a"] => ({
    type: "f16",
    buffer: allocation.buffer,
    leading: size,
    transposed: false,
  });
  const { transposed: _, ...result } = matrix(d);
  const operands = { a: matrix(a), b: matrix(b), d: result };
  return library.matmul({ m: size, n: size, k: size, ...operands, compute: "f32", ...more });
}

const deviceOf = (backend: CudaBackend): Device => createDevice(backend, createCompiler(backend), []);

function diagonalItem(backend: CudaBackend, size: number): WorkItem {
  return {
    id: `diagonal f16 ${size}`,
    // One read of B, one write of D.
    bytes: 4 * size ** 2,
    limit: "memory",
    prepare: async () => {
      const device = deviceOf(backend);
      const [b, d] = [square(device, size, 1), device.empty(f16, [size, size])];
      const values = normalValues(size, 2);
      const written = new Float32Array(size * size);
      for (let i = 0; i < size; i++) written[i * (size + 1)] = values[i]!;
      const [vector, dense] = [device.array(f16, [size], values), device.array(f16, [size, size], written)];
      const plan = await planGemm(diagonal(vector), b);
      const library = new CublasLt(backend);
      const peer = await theirs(library, size, { a: dense, b, d });
      const contenders: Contender[] = [
        { name: "ours", role: "ours", note: plan.kind.schedule, enqueue: () => plan.run() },
        { name: "cuBLASLt, written out", role: "peer", note: peer.note, enqueue: () => peer.enqueue() },
        {
          name: "cuMemcpyDtoDAsync",
          role: "reference",
          enqueue: () => backend.copy(b.allocation.buffer, 0, d.allocation.buffer, 0, 2 * size ** 2),
        },
      ];
      return {
        contenders,
        dispose: () => {
          peer.dispose();
          library.dispose();
          plan.dispose();
          for (const array of [b, d, vector, dense, plan.d]) array.dispose();
        },
      };
    },
  };
}

/** Element by element over D, in place of an epilogue. */
const addBias = kernel("add_bias", {
  params: { x: input(f16, 2), offsets: input(f16), y: output(f16, 2) },
  block: 256,
  body({ x, offsets, y }) {
    const [row, column] = [block.id.y, block.id.x.mul(256).add(thread.index)];
    y.store(row, column, x.load(row, column).add(offsets.load(column)));
  },
});
const rectify = kernel("rectify", {
  params: { x: input(f16, 2), y: output(f16, 2) },
  block: 256,
  body({ x, y }) {
    const [row, column] = [block.id.y, block.id.x.mul(256).add(thread.index)];
    y.store(row, column, max(x.load(row, column), 0));
  },
});

function fusionItem(backend: CudaBackend, size: number): WorkItem {
  return {
    id: `bias + ReLU f16 ${size}`,
    operations: 2 * size ** 3,
    limit: "f16",
    prepare: async () => {
      const device = deviceOf(backend);
      const [a, b] = [square(device, size, 1), square(device, size, 2)];
      const [d, e] = [device.empty(f16, [size, size]), device.empty(f16, [size, size])];
      const offsets = device.array(f16, [size], normalValues(size, 3));
      const plan = await planGemm(a, b, { epilogue: [bias(offsets), relu] });
      const library = new CublasLt(backend);
      const own = await theirs(
        library,
        size,
        { a, b, d },
        {
          epilogue: "bias relu",
          bias: offsets.allocation.buffer,
        },
      );
      const plain = await theirs(library, size, { a, b, d });
      const [adding, rectifying] = [
        await device.compile(addBias as never),
        await device.compile(rectify as never),
      ];
      const added = adding.bind({ x: d, offsets, y: e } as never);
      const rectified = rectifying.bind({ x: e, y: d } as never);
      const blocks: readonly [number, number] = [Math.ceil(size / 256), size];
      return {
        contenders: [
          { name: "ours", role: "ours", note: plan.kind.schedule, enqueue: () => plan.run() },
          { name: "cuBLASLt's epilogue", role: "peer", note: own.note, enqueue: () => own.enqueue() },
          {
            name: "cuBLASLt and two kernels",
            role: "reference",
            enqueue: () => {
              plain.enqueue();
              added.launch(blocks as never);
              rectified.launch(blocks as never);
            },
          },
        ],
        dispose: () => {
          for (const one of [added, rectified, own, plain, library, plan]) one.dispose();
          for (const array of [a, b, d, e, offsets, plan.d]) array.dispose();
        },
      };
    },
  };
}

/**
 * Products over an algebra in f32: complex ones beside cuBLASLt's, dual ones, which it has not, beside the real product
 * of our own. A real product is in both.
 */
function algebraItem(backend: CudaBackend, algebra: Algebra, size: number): WorkItem {
  return {
    id: `${algebra.name} f32 ${size}`,
    // Beside a real product only times can be compared.
    ...(algebra === complex ? { operations: 8 * size ** 3, limit: "f32" } : {}),
    prepare: async () => {
      const device = deviceOf(backend);
      const values = normalValues(size * size * 2, 1);
      const [a, b] = [values, normalValues(size * size * 2, 2)].map((one) =>
        device.array(f32, [size, size, 2], one),
      ) as [DeviceArray, DeviceArray];
      const [x, y] = [a, b].map((pairs) => pairs.reshape([2 * size, size]).slice([0, size])) as [
        DeviceArray,
        DeviceArray,
      ];
      const d = device.empty(f32, [size, size, 2]);
      const plan = await planGemm(algebraMatrix(algebra, a), algebraMatrix(algebra, b));
      const real = await planGemm(x, y);
      const library = new CublasLt(backend);
      const matrix = ({ allocation }: DeviceArray): MatmulOptions["a"] => ({
        type: "complex f32",
        buffer: allocation.buffer,
        leading: size,
      });
      const operands = { a: matrix(a), b: matrix(b), d: matrix(d) };
      const peer =
        algebra === complex
          ? await library.matmul({ m: size, n: size, k: size, ...operands, compute: "f32" })
          : undefined;
      const contenders: Contender[] = [
        { name: "ours", role: "ours", note: plan.kind.schedule, enqueue: () => plan.run() },
        {
          name: "ours, real numbers",
          role: peer === undefined ? "peer" : "reference",
          note: real.kind.schedule,
          enqueue: () => real.run(),
        },
      ];
      if (peer !== undefined)
        contenders.push({ name: "cuBLASLt", role: "peer", note: peer.note, enqueue: () => peer.enqueue() });
      return {
        contenders,
        dispose: () => {
          peer?.dispose();
          library.dispose();
          for (const one of [plan, real]) one.dispose();
          for (const array of [a, b, d, plan.d, real.d]) array.dispose();
        },
      };
    },
  };
}

const sizes = [128, 256, 512, 1024, 2048, 4096, 8192, 16384] as const;

export const evaluationSuite: Suite = {
  name: "evaluation",
  items: (backend) => [
    ...sizes.map((size) => diagonalItem(backend, size)),
    ...sizes.map((size) => fusionItem(backend, size)),
    ...[complex, dual].flatMap((algebra) =>
      sizes.slice(0, -2).map((size) => algebraItem(backend, algebra, size)),
    ),
  ],
};
