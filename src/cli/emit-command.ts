/** @file `tilewright emit`: prints the text of a kernel for a target; needs no device. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type OperatorFactory, planGemm } from "../gemm/index.ts";
import { print } from "../ir/printer.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { TargetFacts } from "../target/facts.ts";
import { type NvidiaTargetName, nvidiaTarget } from "../target/nvidia.ts";
import { simulatorFacts } from "../target/simulator.ts";
import { commonAdapter, webGpuFacts } from "../target/webgpu.ts";
import { type ElementType, f16, type StorageType } from "../types/index.ts";
import {
  extent,
  operatorNamed,
  type ScheduleName,
  scheduleNamed,
  storageType,
  sumType,
} from "./option-values.ts";
import { createPaperDevice } from "./paper-device.ts";
import type { Terminal } from "./terminal.ts";

const nvidiaTargets: readonly NvidiaTargetName[] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"];

/** What can be printed: text for a target, or the representation that it is made of. */
type TargetName = NvidiaTargetName | "wgsl" | "ir" | "javascript";
const targets: readonly TargetName[] = [...nvidiaTargets, "wgsl", "ir", "javascript"];

type LayoutName = "nn" | "nt" | "tn" | "tt";
const layouts: readonly LayoutName[] = ["nn", "nt", "tn", "tt"];

interface EmitOptions {
  readonly target: TargetName;
  readonly type: StorageType;
  readonly outputType?: StorageType;
  readonly accumulate?: ElementType;
  readonly operator?: OperatorFactory;
  readonly schedule?: ScheduleName;
  readonly layout: LayoutName;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Adds the command. */
export function addEmitCommand(program: Command, terminal: Terminal): void {
  program
    .command("emit")
    .summary("print a kernel's text; needs no device")
    .description("Prints the text of a kernel for a target: what a device of that kind would be given.")
    .argument("<kernel>", "which kernel: gemm", kernelName)
    .requiredOption("--target <target>", `one of ${targets.join(", ")}`, oneOf(targets))
    .addOption(
      new Option("--type <type>", "type of A's and B's elements").argParser(storageType).default(f16, "f16"),
    )
    .option("--output-type <type>", "type of D's elements", storageType)
    .option("--accumulate <type>", "type that sums are made in", sumType)
    .option("--operator <name>", "fma, mma or wmma (default: the fastest)", operatorNamed)
    .option(
      "--schedule <name>",
      "warpgroup, multistage or register-staged (default: the fastest)",
      scheduleNamed,
    )
    .option(
      "--layout <layout>",
      "nn, nt, tn or tt: t for an operand that is transposed",
      oneOf(layouts),
      "nn",
    )
    .option("--m <rows>", "rows of D; sizes choose the tiles, the text serves all sizes", extent, 4096)
    .option("--n <columns>", "columns of D", extent, 4096)
    .option("--k <depth>", "columns of A", extent, 4096)
    .action(async (_kernel: string, options: EmitOptions) => {
      terminal.out(await emitGemm(options));
    });
}

function kernelName(text: string): string {
  if (text === "gemm") return text;
  throw new InvalidArgumentError("The kernel is gemm.");
}

function oneOf<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`Known are ${choices.join(", ")}.`);
  };
}

/** The text of the kernel that `gemm` would run on a device of the target's kind. */
async function emitGemm(options: EmitOptions): Promise<string> {
  const { target, type, layout, m, n, k, accumulate, operator, schedule, outputType } = options;
  using device = createPaperDevice(factsOf(target));
  const matrix = (rows: number, columns: number, order: string | undefined): DeviceArray =>
    order === "t" ? device.empty(type, [columns, rows]).transposed : device.empty(type, [rows, columns]);
  const plan = await planGemm(matrix(m, k, layout[0]), matrix(k, n, layout[1]), {
    ...(outputType === undefined ? {} : { type: outputType }),
    ...(accumulate === undefined ? {} : { accumulate }),
    ...(operator === undefined ? {} : { operator }),
    ...(schedule === undefined ? {} : { schedule }),
  });
  // Sizes are at least 1, so there is a kernel.
  const { ir, text } = plan.compiled!;
  const shown = target === "ir" ? print(ir) : text;
  return shown.endsWith("\n") ? shown : `${shown}\n`;
}

/** The representation is shown as the simulator gets it, which has every instruction. */
function factsOf(target: TargetName): TargetFacts {
  if (target === "wgsl") return webGpuFacts(commonAdapter);
  return target === "ir" || target === "javascript" ? simulatorFacts() : nvidiaTarget(target);
}
