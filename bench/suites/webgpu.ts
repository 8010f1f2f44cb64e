/**
 * @file Square products through WebGPU, beside onnxruntime's WebGPU provider and our own CUDA route, one machine, turn by
 * turn. Runs on any WebGPU adapter; peers that are not there are left out, and the reason is printed.
 */
import { cpus } from "node:os";
import { type Device, f16, f32, open, type StorageType } from "tilewright";
import { fma, type GemmOptions, planGemm, wmmaSync } from "tilewright/gemm";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { type Environment, environment } from "../environment.ts";
import type { Contender, WorkItem } from "../harness.ts";
import { findOnnxRuntime, matMulChain } from "../peers/onnxruntime.ts";
import { normalValues } from "../random.ts";
import { formatItem, itemResult, ResultStore } from "../results.ts";
import { type Summary, summarise } from "../statistics.ts";

/** What to run. */
export interface WebgpuSelection {
  readonly directory: string;
  readonly only?: RegExp | undefined;
  readonly sizes?: readonly number[] | undefined;
  readonly rounds?: number | undefined;
}

const usualSizes = [1024, 2048, 4096];
const types = ["f32", "f16"] as const;
type TypeName = (typeof types)[number];

/** Least duration of one of our samples. */
const sampleSeconds = 0.02;

/** A contender whose samples take as long as they say; runs of others cannot be enqueued. */
interface Runner extends Omit<Contender, "enqueue"> {
  sample(): Promise<number>;
  dispose(): void | Promise<void>;
}

const idOf = (type: TypeName, size: number): string => `${type} ${size} x ${size} x ${size}`;

/** Names of the items. */
export function webgpuItems(only: RegExp = /(?:)/, sizes: readonly number[] = usualSizes): readonly string[] {
  return types.flatMap((type) => sizes.map((size) => idOf(type, size))).filter((id) => only.test(id));
}

async function ours(
  device: Device,
  name: string,
  role: Contender["role"],
  type: StorageType,
  size: number,
  options: GemmOptions = {},
): Promise<Runner> {
  const matrix = (seed: number) => device.array(type, [size, size], normalValues(size * size, seed));
  const [a, b] = [matrix(1), matrix(2)];
  const plan = await planGemm(a, b, options);
  plan.run();
  await device.sync();
  const once = await device.time(() => plan.run());
  const repeats = Math.min(1000, Math.max(1, Math.ceil(sampleSeconds / Math.max(once, 1e-6))));
  const { block } = plan.kind.params;
  return {
    name,
    role,
    note: `${plan.operator}, ${plan.kind.schedule}, block ${block.m} x ${block.n} x ${block.k}`,
    sample: async () =>
      (await device.time(() => {
        for (let turn = 0; turn < repeats; turn++) plan.run();
      })) / repeats,
    dispose: () => {
      plan.dispose();
      for (const array of [a, b, plan.d]) array.dispose();
    },
  };
}

async function peer(type: TypeName, size: number): Promise<Runner> {
  const runtime = findOnnxRuntime();
  if (typeof runtime === "string") throw new Error(runtime);
  // Products keep the magnitude of what they multiply.
  const b = normalValues(size * size, 2).map((value) => value / Math.sqrt(size));
  const chain = await matMulChain(runtime, type, size, [normalValues(size * size, 1), b]);
  await chain.sample();
  const note = "WebGPU provider; the difference of two chains of MatMul";
  return { name: "onnxruntime", role: "peer", note, ...chain };
}

/** Contenders of an item, and why others are missing. */
async function contenders(
  webgpu: Device,
  cuda: Device | undefined,
  typeName: TypeName,
  size: number,
): Promise<readonly Runner[]> {
  const type = typeName === "f32" ? f32 : f16;
  const makers: (readonly [string, () => Promise<Runner>])[] =
    typeName === "f32"
      ? [["ours", () => ours(webgpu, "ours", "ours", type, size)]]
      : [
          ["ours, fma", () => ours(webgpu, "ours, fma", "ours", type, size, { operator: fma })],
          [
            "ours, subgroup matrices",
            () => ours(webgpu, "ours, subgroup matrices", "ours", type, size, { operator: wmmaSync }),
          ],
        ];
  makers.push(["onnxruntime", () => peer(typeName, size)]);
  if (cuda !== undefined) {
    makers.push(["ours, CUDA", () => ours(cuda, "ours, CUDA", "reference", type, size)]);
  }
  const ready: Runner[] = [];
  for (const [name, make] of makers) {
    try {
      ready.push(await make());
    } catch (error) {
      console.log(`  ${name} is left out: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return ready;
}

async function measured(runners: readonly Runner[], rounds: number): Promise<readonly Summary[]> {
  const samples: number[][] = runners.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (let step = 0; step < runners.length; step++) {
      const index = (round + step) % runners.length;
      samples[index]!.push(await runners[index]!.sample());
    }
  }
  return samples.map(summarise);
}

/** Of this process; WebGPU tells nothing of drivers. */
function here(device: Device, cuda: Device | undefined): Environment {
  // The card's own name, where CUDA tells it: the limits are listed under it.
  const name = cuda?.name ?? device.name;
  const { driver, ...rest } = environment({ name, device: { driver: [] } } as unknown as CudaBackend);
  const software = /swiftshader|llvmpipe|lavapipe/i.test(device.name);
  return { ...rest, driver: software ? cpus()[0]?.model.trim() : driver, cuda: "" };
}

/** Runs the products whose names match and keeps the results. */
export async function benchWebgpu({
  directory,
  only = /(?:)/,
  sizes = usualSizes,
  rounds = 15,
}: WebgpuSelection): Promise<void> {
  await using webgpu = await open("webgpu");
  await using cuda = await open("cuda").catch(() => undefined);
  const where = here(webgpu, cuda);
  const store = new ResultStore(directory, "webgpu", where.device);
  for (const type of types) {
    for (const size of sizes) {
      const id = idOf(type, size);
      if (!only.test(id)) continue;
      const work = { id, operations: 2 * size ** 3, limit: type } as WorkItem;
      const runners = await contenders(webgpu, cuda, type, size);
      try {
        const all = runners.map((runner) => ({ ...runner, enqueue: () => undefined }));
        const result = itemResult(work, all, await measured(runners, rounds), where);
        store.put(id, result);
        console.log(formatItem(id, result));
      } finally {
        for (const runner of runners) await runner.dispose();
      }
    }
  }
}
