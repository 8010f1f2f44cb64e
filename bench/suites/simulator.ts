/**
 * @file The simulator's own speed: 256 x 256 x 256 through matrix fragments and through ordinary multiply-adds, with its
 * checks and without. Needs no GPU; the device is the processor.
 */
import { cpus } from "node:os";
import { type Device, f16, f32, open, type StorageType } from "tilewright";
import { fma, type GemmOptions, mmaSync, planGemm } from "tilewright/gemm";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { type Environment, environment } from "../environment.ts";
import { type Care, type Clock, type Contender, measure, type WorkItem } from "../harness.ts";
import { normalValues } from "../random.ts";
import { formatItem, itemResult, ResultStore } from "../results.ts";

const size = 256;
/** A sample is one product; the first ones let the JavaScript engine compile. */
const care: Care = { rounds: 5, sampleSeconds: 0, warmUpSeconds: 2 };

interface Product {
  readonly name: string;
  readonly operand: StorageType;
  readonly options: GemmOptions;
}

const products: readonly Product[] = [
  { name: "f16 through mma fragments", operand: f16, options: { operator: mmaSync } },
  { name: "f16 through warpgroup products", operand: f16, options: { schedule: "warpgroup" } },
  { name: "f32 through fma", operand: f32, options: { operator: fma } },
];

/** Operations are counted for the report alone: the processor's own limit says nothing here. */
function item({ name }: Product): Omit<WorkItem, "prepare"> {
  return { id: `${name}, ${size} x ${size} x ${size}`, operations: 2 * size ** 3, clock: "host" };
}

async function contender(
  name: string,
  role: Contender["role"],
  device: Device,
  { operand, options }: Product,
): Promise<Contender> {
  const matrix = (seed: number) => device.array(operand, [size, size], normalValues(size * size, seed));
  const [a, b] = [matrix(1), matrix(2)];
  const start = performance.now();
  const plan = await planGemm(a, b, { type: f32, ...options });
  plan.run();
  await device.sync();
  const first = performance.now() - start;
  const note = `${plan.kind.schedule}; ${first.toFixed(0)} ms the first time, compilation included`;
  return { name, role, note, enqueue: () => plan.run() };
}

/** The clock on the wall, between two moments when neither simulator has work. */
function wallClock(devices: readonly Device[]): Clock {
  const sync = async (): Promise<void> => {
    for (const device of devices) await device.sync();
  };
  return {
    sync,
    async time(enqueue) {
      await sync();
      const start = performance.now();
      enqueue();
      await sync();
      return (performance.now() - start) / 1000;
    },
  };
}

function here(): Environment {
  const device = cpus()[0]?.model.trim() ?? process.arch;
  // All that is asked of a backend is what to call it.
  const {
    cuda: _,
    driver: __,
    ...rest
  } = environment({ name: device, device: { driver: [] } } as unknown as CudaBackend);
  return { ...rest, driver: undefined, cuda: "" };
}

/** The names of the products, or of those that match. */
export function simulatorItems(only: RegExp = /(?:)/): readonly string[] {
  return products.map((product) => item(product).id).filter((id) => only.test(id));
}

/** Runs all products whose name matches and keeps the results in `directory`. */
export async function benchSimulator(directory: string, only: RegExp = /(?:)/): Promise<void> {
  const where = here();
  const store = new ResultStore(directory, "simulator", where.device);
  for (const product of products) {
    const work = item(product);
    if (!only.test(work.id)) continue;
    const checking = await open({ kind: "simulator", simulator: { checks: true } });
    const quick = await open({ kind: "simulator", simulator: { checks: false } });
    const contenders = [
      // The ratio is then what leaving out the checks gains.
      await contender("with checks", "peer", checking, product),
      await contender("without checks", "ours", quick, product),
    ];
    const summaries = await measure(wallClock([checking, quick]), contenders, "device", care);
    const result = itemResult(work as WorkItem, contenders, summaries, where);
    store.put(work.id, result);
    console.log(formatItem(work.id, result));
    checking.dispose();
    quick.dispose();
  }
}
