/** @file `tilewright contract`: contracts arrays of any rank in `.npy` files. */
import type { Command } from "commander";
import { type ContractionPlan, planContraction } from "../gemm/index.ts";
import type { ElementType, StorageType } from "../types/index.ts";
import { type ArrayFile, checkWritable, openArray, saveArray } from "./array-files.ts";
import { openDevice } from "./device-choice.ts";
import { interruptible } from "./interrupt.ts";
import { factor, storageType, sumType } from "./option-values.ts";
import { Progress } from "./progress.ts";
import { formatJson, formatSeconds } from "./report.ts";
import type { Terminal } from "./terminal.ts";

interface ContractCommandOptions {
  readonly output: string;
  readonly alpha?: number | bigint;
  readonly type?: StorageType;
  readonly accumulate?: ElementType;
  readonly opaqueAs?: StorageType;
  readonly device?: string;
  readonly json?: true;
  readonly explain?: true;
}

/** Adds the command. */
export function addContractCommand(program: Command, terminal: Terminal): void {
  program
    .command("contract")
    .summary("contract arrays of any rank in .npy files")
    .description(
      'D = alpha · Σ A · B over the indices that D has not: `contract "bda,dc->abc" A.npy B.npy -o D.npy`',
    )
    .argument("<specification>", "indices of A, of B and of D, a letter each: bda,dc->abc")
    .argument("<A.npy>", "the first array")
    .argument("<B.npy>", "the second array")
    .requiredOption("-o, --output <D.npy>", "where the result goes")
    .option("--alpha <number>", "factor of the contraction (default: 1)", factor)
    .option("--type <type>", "type of D's elements (default: that of A and B)", storageType)
    .option("--accumulate <type>", "type that sums are made in", sumType)
    .option("--opaque-as <type>", "type of elements that numpy calls opaque: bf16, e4m3 or e5m2", storageType)
    .option("--device <name>", "cuda, cuda:1, webgpu or simulator (default: the best present)")
    .option("--json", "print facts as JSON")
    .option("--explain", "say which way was taken, and why")
    .action((specification: string, a: string, b: string, options: ContractCommandOptions) =>
      runContract(specification, a, b, options, terminal),
    );
}

async function runContract(
  specification: string,
  a: string,
  b: string,
  options: ContractCommandOptions,
  terminal: Terminal,
): Promise<void> {
  const { opaqueAs, output } = options;
  const files: ArrayFile[] = [];
  try {
    for (const path of [a, b]) files.push(await openArray(path, opaqueAs === undefined ? {} : { opaqueAs }));
    await checkWritable(output);
    terminal.out(
      await interruptible((signal) => contractFiles(specification, files, options, terminal, signal)),
    );
  } finally {
    for (const file of files) await file.close();
  }
}

/** Loads, contracts, saves; gives what is to be printed. */
async function contractFiles(
  specification: string,
  files: readonly ArrayFile[],
  options: ContractCommandOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string> {
  const { output, alpha, type, accumulate } = options;
  const progress = new Progress(terminal);
  const device = await openDevice(options.device, { progress, activity: "contracting", signal });
  try {
    const arrays = [];
    for (const file of files) {
      const report = (fraction: number): void => progress.report(`reading ${file.path}`, fraction);
      arrays.push(await file.load(device, { signal, report }));
    }
    const [a, b] = arrays;
    using plan = await planContraction(specification, a!, b!, {
      ...(alpha === undefined ? {} : { alpha }),
      ...(type === undefined ? {} : { type }),
      ...(accumulate === undefined ? {} : { accumulate }),
      signal,
    });
    const seconds = await device.time(() => plan.run());
    const report = (fraction: number): void => progress.report(`writing ${output}`, fraction);
    await saveArray(output, plan.d, { signal, report });
    return describe(device.name, specification, files, options, plan, seconds);
  } finally {
    progress.end();
    device.dispose();
  }
}

function describe(
  device: string,
  specification: string,
  files: readonly ArrayFile[],
  options: ContractCommandOptions,
  plan: ContractionPlan,
  seconds: number,
): string {
  const { d } = plan;
  if (options.json === true) {
    const [a, b] = files.map(({ path, type, shape }) => ({ path, type: type.name, shape }));
    return formatJson({
      device,
      specification,
      a,
      b,
      d: { path: options.output, type: d.type.name, shape: d.shape },
      products: plan.products.length,
      seconds,
      ...(options.explain === true ? { explanation: plan.explain() } : {}),
    });
  }
  const summary = `${options.output}: ${d.type.name} [${d.shape.join(", ")}], ${formatSeconds(seconds)} on ${device}\n`;
  return options.explain === true ? `${summary}${plan.explain()}\n` : summary;
}
