/** @file `tilewright tune gemm`: finds the fastest params of a product on the device at hand, for later plans. */
import type { Command } from "commander";
import { AbortedError } from "../errors.ts";
import {
  type GemmParams,
  type GemmTuning,
  type OperatorFactory,
  type TuningProblem,
  tuneGemm,
} from "../gemm/index.ts";
import { type ElementType, f16, type StorageType } from "../types/index.ts";
import { openDevice } from "./device-choice.ts";
import { interruptible } from "./interrupt.ts";
import {
  computeType,
  extent,
  type Orders,
  operatorNamed,
  ordersNamed,
  type ScheduleName,
  scheduleNamed,
  storageType,
  sumType,
} from "./option-values.ts";
import { Progress } from "./progress.ts";
import { formatJson, formatRate, formatSeconds } from "./report.ts";
import type { Terminal } from "./terminal.ts";

interface TuneCommandOptions {
  readonly type: StorageType;
  readonly typeB?: StorageType;
  readonly typeD?: StorageType;
  readonly layout: Orders;
  readonly accumulate?: ElementType;
  readonly compute?: ElementType;
  readonly operator?: OperatorFactory;
  readonly schedule?: ScheduleName;
  readonly most: number;
  readonly again?: true;
  readonly device?: string;
  readonly json?: true;
}

/** Sizes of a product. */
interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Adds the command. */
export function addTuneCommand(program: Command, terminal: Terminal): void {
  program
    .command("tune")
    .summary("find the fastest tiles for this device")
    .description("Finds the fastest tiles of an operation on this device, for later plans.")
    .command("gemm")
    .summary("tune a product of matrices")
    .description(
      "Times tiles, stages, tile orders and parts of K for D = A · B, and keeps the fastest for later products of like sizes. " +
        "Ctrl-C keeps what was found; the same command goes on from there.",
    )
    .argument("<m>", "rows of A and D", extent)
    .argument("<n>", "columns of B and D", extent)
    .argument("<k>", "columns of A, rows of B", extent)
    .option("--type <type>", "type of A's elements", storageType, f16)
    .option("--type-b <type>", "type of B's elements (default: A's)", storageType)
    .option("--type-d <type>", "type of D's elements (default: what gemm chooses)", storageType)
    .option(
      "--layout <orders>",
      "orders of A and B: nn, nt, tn or tt; t is a transposed view",
      ordersNamed,
      "nn",
    )
    .option("--accumulate <type>", "type that sums are made in", sumType)
    .option("--compute <type>", "type that is multiplied in", computeType)
    .option("--operator <name>", "fma, mma or wmma (default: the fastest)", operatorNamed)
    .option(
      "--schedule <name>",
      "warpgroup, multistage or register-staged (default: the fastest)",
      scheduleNamed,
    )
    .option("--most <number>", "candidates to try", extent, 32)
    .option("--again", "forget what a stopped search has tried")
    .option("--device <name>", "cuda, cuda:1, webgpu or simulator (default: the best present)")
    .option("--json", "print facts as JSON")
    .option("--debug", "say everything that is known of an error")
    .action((m: number, n: number, k: number, options: TuneCommandOptions) =>
      runTune({ m, n, k }, options, terminal),
    );
}

async function runTune(sizes: Sizes, options: TuneCommandOptions, terminal: Terminal): Promise<void> {
  terminal.out(await interruptible((signal) => tune(sizes, options, terminal, signal)));
}

async function tune(
  sizes: Sizes,
  options: TuneCommandOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string> {
  const progress = new Progress(terminal);
  const device = await openDevice(options.device, { progress, activity: "multiplying", signal });
  try {
    const { most, again } = options;
    const tuning = await tuneGemm(device, problemOf(sizes, options), {
      most,
      again: again === true,
      signal,
      onProgress: ({ done, total, seconds }) => {
        const best = seconds === undefined ? "" : `, best ${formatSeconds(seconds)}`;
        progress.report(`tuning, ${done} of ${total}${best}`, done / total);
      },
    });
    progress.end();
    return describe(sizes, tuning, options, device.name);
  } catch (error) {
    if (!(error instanceof AbortedError)) throw error;
    throw new AbortedError("tuning was stopped; the same command goes on from there", { cause: error });
  } finally {
    progress.end();
    device.dispose();
  }
}

function problemOf(sizes: Sizes, options: TuneCommandOptions): TuningProblem {
  const { type, typeB, typeD, layout, accumulate, compute, operator, schedule } = options;
  return {
    ...sizes,
    a: type,
    layout,
    ...(typeB === undefined ? {} : { b: typeB }),
    ...(typeD === undefined ? {} : { d: typeD }),
    ...(accumulate === undefined ? {} : { accumulate }),
    ...(compute === undefined ? {} : { compute }),
    ...(operator === undefined ? {} : { operator }),
    ...(schedule === undefined ? {} : { schedule }),
  };
}

/** Lines shown of what was slower. */
const shown = 5;

function describe(
  { m, n, k }: Sizes,
  tuning: GemmTuning,
  { json }: TuneCommandOptions,
  deviceName: string,
): string {
  const { schedule, seconds, usualSeconds, measured, refused } = tuning;
  if (json === true) return formatJson({ device: deviceName, m, n, k, ...tuning });
  const rate = (time: number): string => formatRate((2 * m * n * k) / time);
  const gain =
    usualSeconds === undefined ? "" : `, ${(usualSeconds / seconds).toFixed(2)} times as fast as the usual`;
  const lines = [
    `${m} x ${n} x ${k} on ${deviceName}, ${schedule}: ${formatSeconds(seconds)}, ${rate(seconds)}${gain}`,
    ...measured
      .slice(0, shown)
      .map((one) => `  ${formatSeconds(one.seconds).padStart(8)}  ${formatParams(one.params)}`),
    ...(measured.length > shown ? [`  … ${measured.length - shown} more were slower`] : []),
    ...(refused.length > 0 ? [`  ${refused.length} did not count; the first: ${refused[0]!.reason}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function formatParams({ block, warps, groupRows, stages, splitK }: GemmParams): string {
  const ring = stages === undefined ? "" : `, ${stages} stages`;
  const parts = splitK === undefined ? "" : `, K in ${splitK} parts`;
  return `block ${block.m} x ${block.n} x ${block.k}, ${warps.m} x ${warps.n} warps, groups of ${groupRows} tile rows${ring}${parts}`;
}
