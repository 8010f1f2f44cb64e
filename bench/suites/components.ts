/**
 * @file What components cost: each beside the plain product of the same size in one process, turn by turn. The ratio is
 * how much of the plain product's rate is left; for matrices of which less counts it says how much sooner they are done.
 */
import {
  type Algebra,
  algebraMatrix,
  bias,
  complex,
  complex3m,
  dual,
  type GemmOptions,
  type GemmPlan,
  maxPlus,
  planConv2d,
  planGemm,
  relu,
  residual,
  semiringOperator,
  type Transform,
  triangular,
} from "tilewright/gemm";
import { f16, f32, type StorageType, select, tf32 } from "tilewright/lang";
import type { Device, DeviceArray } from "../../src/runtime/array.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice } from "../../src/runtime/device.ts";
import type { Contender, WorkItem } from "../harness.ts";
import type { LimitKind } from "../limits.ts";
import { type CudnnPlan, planCudnn } from "../peers/cudnn.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

/** What is put into a product of large square matrices. */
interface Component {
  readonly name: string;
  readonly options?: (arrays: Arrays) => GemmOptions;
  /** A as something else than a dense matrix. */
  readonly left?: (a: DeviceArray) => Parameters<typeof planGemm>[0];
}

/** Arrays that components may want. */
interface Arrays {
  readonly columns: DeviceArray;
  readonly residual: DeviceArray;
}

const changed: Transform = (x) => x.mul(0.5).add(1);
const placed: Transform = (x, { row, column }) =>
  select(row.add(column).and(1).eq(0), x, x.mul(0.5)) as never;

const components: readonly Component[] = [
  { name: "bias + ReLU", options: ({ columns }) => ({ epilogue: [bias(columns), relu] }) },
  {
    name: "bias + ReLU + residual",
    options: ({ columns, residual: other }) => ({ epilogue: [bias(columns), relu, residual(other)] }),
  },
  { name: "a function of coordinates", options: () => ({ epilogue: [placed] }) },
  { name: "a transform of A", options: () => ({ transforms: { a: { globalToShared: changed } } }) },
  { name: "a transform of B", options: () => ({ transforms: { b: { globalToShared: changed } } }) },
  { name: "triangular A", left: (a) => triangular(a, "lower") },
];

const distinct = 1_000_003;

function square(
  device: Device,
  type: StorageType,
  size: number,
  seed: number,
  components: readonly number[] = [],
): DeviceArray {
  const values = normalValues(distinct, seed);
  const host = new Float32Array(size * size * (components[0] ?? 1));
  for (let i = 0; i < host.length; i += distinct)
    host.set(values.subarray(0, Math.min(distinct, host.length - i)), i);
  return device.array(type, [size, size, ...components], host);
}

function contender(name: string, role: Contender["role"], plan: GemmPlan): Contender {
  const { kind, compiled } = plan;
  const note = `${kind.schedule}, block ${Object.values(kind.params.block).join(" x ")}, ${compiled?.registersPerThread} registers, ${compiled?.spilledBytes} bytes spilled`;
  return { name, role, note, enqueue: () => plan.run() };
}

function item(backend: CudaBackend, size: number, { name, options, left }: Component): WorkItem {
  return {
    id: `f16 ${size} x ${size} x ${size}, ${name}`,
    operations: 2 * size ** 3,
    limit: "f16",
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const [a, b, other] = [1, 2, 3].map((seed) => square(device, f16, size, seed));
      const columns = device.array(f16, [size], normalValues(size, 4));
      const plain = await planGemm(a!, b!);
      const arrays = { columns, residual: other! };
      const plan = await planGemm(left?.(a!) ?? a!, b!, options?.(arrays) ?? {});
      return {
        contenders: [contender("plain", "peer", plain), contender(name, "ours", plan)],
        dispose: () => {
          for (const one of [plain, plan]) one.dispose();
          for (const array of [a!, b!, other!, columns, plain.d, plan.d]) array.dispose();
        },
      };
    },
  };
}

/** Two instructions a pair, of 128 lanes in each multiprocessor: an addition and a maximum take as long as two f32 FMAs. */
const semiringLimit: LimitKind = "f32";

function semiring(backend: CudaBackend, size: number): WorkItem {
  return {
    id: `max-plus f32 ${size} x ${size} x ${size}`,
    operations: 4 * size ** 3,
    limit: semiringLimit,
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const [a, b] = [1, 2].map((seed) => square(device, f32, size, seed));
      const plan = await planGemm(a!, b!, { operator: semiringOperator(maxPlus) });
      return {
        contenders: [contender("ours", "ours", plan)],
        dispose: () => {
          plan.dispose();
          for (const array of [a!, b!, plan.d]) array.dispose();
        },
      };
    },
  };
}

/** How elements of several components come to a schedule. */
interface ElementRoute {
  readonly schedule: "register-staged" | "warpgroup";
  /** "interleaved" is copied to planes each time where the schedule wants them; "split" lies in planes. */
  readonly storage: "interleaved" | "split";
  readonly options?: GemmOptions;
}

/** A product over an algebra beside the real one of the same schedule: a quarter of its rate is the time of four products. */
function overAlgebra(
  backend: CudaBackend,
  size: number,
  type: typeof f16 | typeof f32,
  algebra: Algebra,
  { schedule, storage, options = {} }: ElementRoute,
): WorkItem {
  const route = schedule === "warpgroup" ? `, warpgroup, ${storage}` : "";
  return {
    id: `${algebra.name} ${type.name} ${size} x ${size} x ${size}${route}`,
    operations: 2 * size ** 3,
    limit: options.compute === tf32 ? "tf32" : type.name,
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const [a, b] = [1, 2].map((seed) => square(device, type, size, seed));
      const [x, y] = [3, 4].map((seed) => square(device, type, size, seed, [algebra.dimension]));
      const matrix = (array: DeviceArray) =>
        algebraMatrix(
          algebra,
          storage === "interleaved"
            ? array
            : array.reshape([algebra.dimension, size, size]).permute([1, 2, 0]),
        );
      // Real operands lie as the schedule wants them; what packing costs is the algebra's.
      const right = options.compute === undefined ? b! : b!.transposed;
      const plain = await planGemm(a!, right, { ...options, schedule });
      const plan = await planGemm(matrix(x!), matrix(y!), {
        ...options,
        ...(schedule === "warpgroup" && storage === "interleaved" ? { pack: true } : { schedule }),
      });
      return {
        contenders: [contender(`real, ${schedule}`, "peer", plain), contender(algebra.name, "ours", plan)],
        dispose: () => {
          for (const one of [plain, plan]) one.dispose();
          for (const array of [a!, b!, x!, y!, plain.d, plan.d]) array.dispose();
        },
      };
    },
  };
}

/** cuDNN's convolution; undefined, and said so, where there is no cuDNN. */
function cudnnPlan(...given: Parameters<typeof planCudnn>): CudnnPlan | undefined {
  try {
    return planCudnn(...given);
  } catch (error) {
    console.error(`without cuDNN as a peer: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** A 3 x 3 convolution of 256 channels beside cuDNN's, where it is there, and the product of the same M, N and K. */
function convolution(backend: CudaBackend, padding: "same" | "valid"): WorkItem {
  const [batch, pixels, channels] = [32, 56, 256];
  const places = padding === "same" ? pixels : pixels - 2;
  const [m, n, k] = [batch * places * places, channels, 9 * channels];
  return {
    id: `f16 conv2d NHWC ${batch} x ${pixels} x ${pixels} x ${channels}, 3 x 3, ${padding}`,
    operations: 2 * m * n * k,
    limit: "f16",
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const values = (count: number, seed: number): Float32Array => {
        const some = normalValues(distinct, seed);
        return Float32Array.from({ length: count }, (_, at) => some[at % distinct]!);
      };
      const images = device.array(
        f16,
        [batch, pixels, pixels, channels],
        values(batch * pixels ** 2 * channels, 1),
      );
      const filters = device.array(f16, [channels, 3, 3, channels], values(n * k, 2));
      const a = device.array(f16, [m, k], values(m * k, 3));
      const plain = await planGemm(a, filters.reshape([n, k]).transposed);
      const plan = await planConv2d(images, filters, { padding });
      const result = plan.d;
      const peer = cudnnPlan(
        backend,
        {
          images: [batch, pixels, pixels, channels],
          filters: [channels, 3, 3, channels],
          padding: padding === "same" ? 1 : 0,
          stride: 1,
        },
        {
          images: images.allocation.buffer,
          filters: filters.allocation.buffer,
          result: result.allocation.buffer,
        },
      );
      const contenders = [
        contender("plain", peer === undefined ? "peer" : "reference", plain),
        contender("conv2d", "ours", plan.products[0]!),
      ];
      if (peer !== undefined)
        contenders.push({ name: "cuDNN", role: "peer", note: peer.note, enqueue: () => peer.enqueue() });
      return {
        contenders,
        dispose: () => {
          peer?.dispose();
          for (const one of [plain, plan]) one.dispose();
          for (const array of [images, filters, a, plain.d, plan.d]) array.dispose();
        },
      };
    },
  };
}

export const componentsSuite: Suite = {
  name: "components",
  items: (backend) => [
    ...[4096, 8192].flatMap((size) => components.map((component) => item(backend, size, component))),
    semiring(backend, 4096),
    convolution(backend, "same"),
    convolution(backend, "valid"),
    ...[f16, f32].flatMap((type) =>
      [complex, complex3m, dual].map((algebra) =>
        overAlgebra(backend, 4096, type, algebra, { schedule: "register-staged", storage: "interleaved" }),
      ),
    ),
    ...[4096, 8192].flatMap((size) =>
      [complex, dual].flatMap((algebra) =>
        (["interleaved", "split"] as const).map((storage) =>
          overAlgebra(backend, size, f16, algebra, { schedule: "warpgroup", storage }),
        ),
      ),
    ),
    overAlgebra(backend, 4096, f32, complex, {
      schedule: "warpgroup",
      storage: "interleaved",
      options: { compute: tf32 },
    }),
  ],
};
