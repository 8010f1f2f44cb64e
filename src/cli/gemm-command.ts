/** @file `tilewright gemm`: multiplies matrices in `.npy` files. */
import type { Command } from "commander";
import { ShapeError } from "../errors.ts";
import { type GemmOptions, type GemmPlan, type OperatorFactory, planGemm } from "../gemm/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import type { ElementType, StorageType } from "../types/index.ts";
import { openDevice } from "./device-choice.ts";
import { UsageError } from "./failure.ts";
import { interruptible } from "./interrupt.ts";
import { checkWritable, type MatrixFile, openMatrix, saveMatrix } from "./matrix-files.ts";
import {
  factor,
  operatorNamed,
  type ScheduleName,
  scheduleNamed,
  storageType,
  sumType,
} from "./option-values.ts";
import { Progress } from "./progress.ts";
import { formatJson, formatRate, formatSeconds, routeOf } from "./report.ts";
import type { Terminal } from "./terminal.ts";

interface GemmCommandOptions {
  readonly output: string;
  readonly c?: string;
  readonly alpha?: number | bigint;
  readonly beta?: number | bigint;
  readonly transposeA?: true;
  readonly transposeB?: true;
  readonly type?: StorageType;
  readonly accumulate?: ElementType;
  readonly operator?: OperatorFactory;
  readonly schedule?: ScheduleName;
  readonly opaqueAs?: StorageType;
  readonly device?: string;
  readonly json?: true;
  readonly explain?: true;
}

/** Adds the command. */
export function addGemmCommand(program: Command, terminal: Terminal): void {
  program
    .command("gemm")
    .summary("multiply matrices in .npy files")
    .description("D = alpha · A · B + beta · C, of matrices in .npy files")
    .argument("<A.npy>", "the left matrix, m x k")
    .argument("<B.npy>", "the right matrix, k x n")
    .requiredOption("-o, --output <D.npy>", "where the result goes")
    .option("--c <C.npy>", "a matrix to add, m x n")
    .option("--alpha <number>", "factor of the product (default: 1)", factor)
    .option("--beta <number>", "factor of C (default: 1)", factor)
    .option("--transpose-a", "take A transposed")
    .option("--transpose-b", "take B transposed")
    .option(
      "--type <type>",
      "type of D's elements (default: that of A and B, i32 for small integers)",
      storageType,
    )
    .option("--accumulate <type>", "type that sums are made in", sumType)
    .option("--operator <name>", "fma, mma or wmma (default: the fastest)", operatorNamed)
    .option(
      "--schedule <name>",
      "warpgroup, multistage or register-staged (default: the fastest)",
      scheduleNamed,
    )
    .option("--opaque-as <type>", "type of elements that numpy calls opaque: bf16, e4m3 or e5m2", storageType)
    .option("--device <name>", "cuda, cuda:1, webgpu or simulator (default: the best present)")
    .option("--json", "print facts as JSON")
    .option("--explain", "say which way was taken, and why")
    .action((a: string, b: string, options: GemmCommandOptions) => runGemm(a, b, options, terminal));
}

/** The matrices of a multiplication. */
interface Operands<T> {
  readonly a: T;
  readonly b: T;
  readonly c: T | undefined;
}

async function runGemm(a: string, b: string, options: GemmCommandOptions, terminal: Terminal): Promise<void> {
  if (options.beta !== undefined && options.c === undefined) {
    throw new UsageError("--beta is the factor of C: give --c as well, or leave --beta out");
  }
  await withFiles([a, b, ...(options.c === undefined ? [] : [options.c])], options, async ([a, b, c]) => {
    const files = { a: a!, b: b!, c };
    checkShapes(files, options);
    await checkWritable(options.output);
    terminal.out(await interruptible((signal) => multiplyFiles(files, options, terminal, signal)));
  });
}

/** Opens files for the time that `work` takes. */
async function withFiles(
  paths: readonly string[],
  { opaqueAs }: GemmCommandOptions,
  work: (files: readonly MatrixFile[]) => Promise<void>,
): Promise<void> {
  const files: MatrixFile[] = [];
  try {
    for (const path of paths) files.push(await openMatrix(path, opaqueAs === undefined ? {} : { opaqueAs }));
    await work(files);
  } finally {
    for (const file of files) await file.close();
  }
}

/** Rows and columns as they are multiplied. */
function extents({ rows, columns }: MatrixFile, transposed: boolean | undefined): readonly [number, number] {
  return transposed === true ? [columns, rows] : [rows, columns];
}

function checkShapes({ a, b, c }: Operands<MatrixFile>, options: GemmCommandOptions): void {
  const [m, k] = extents(a, options.transposeA);
  const [inner, n] = extents(b, options.transposeB);
  const named = (name: string, transposed: boolean | undefined): string =>
    transposed === true ? `${name} transposed` : name;
  if (k !== inner) {
    const toggled = (present: boolean | undefined): string => (present === true ? "leaving out" : "giving");
    const hint =
      k === n
        ? `; ${toggled(options.transposeB)} --transpose-b would fit`
        : m === inner
          ? `; ${toggled(options.transposeA)} --transpose-a would fit`
          : "";
    throw new ShapeError(
      `${named(a.path, options.transposeA)} is ${m} x ${k} and ${named(b.path, options.transposeB)} is ${inner} x ${n}: ` +
        `the ${k} columns must equal the ${inner} rows${hint}`,
    );
  }
  if (c !== undefined && (c.rows !== m || c.columns !== n)) {
    throw new ShapeError(
      `${c.path} is ${c.rows} x ${c.columns}; the product is ${m} x ${n}, and C must be too`,
    );
  }
}

/** Opens a device and multiplies there; gives what is to be printed. */
async function multiplyFiles(
  files: Operands<MatrixFile>,
  options: GemmCommandOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<string> {
  const progress = new Progress(terminal);
  const device = await openDevice(options.device, { progress, activity: "multiplying", signal });
  try {
    return await multiply(device, files, options, { terminal, progress, signal });
  } finally {
    progress.end();
    device.dispose();
  }
}

/** What is watched and what stops the work. */
interface Supervision {
  readonly terminal: Terminal;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** Loads, multiplies, saves; gives what is to be printed. */
async function multiply(
  device: Device,
  files: Operands<MatrixFile>,
  options: GemmCommandOptions,
  { terminal, progress, signal }: Supervision,
): Promise<string> {
  const load = (file: MatrixFile): Promise<DeviceArray> =>
    file.load(device, { signal, report: (fraction) => progress.report(`reading ${file.path}`, fraction) });
  const a = await load(files.a);
  const b = await load(files.b);
  const c = files.c === undefined ? undefined : await load(files.c);
  const left = options.transposeA === true ? a.transposed : a;
  const right = options.transposeB === true ? b.transposed : b;
  using plan = await planGemm(left, right, { ...gemmOptions(options, c), signal });
  // Said only when all is well: a failure says one line.
  if (device.missing.length > 0 && device.kind === "simulator") {
    terminal.error("tilewright: no GPU can be used, so the simulator works; `tilewright devices` says why\n");
  }
  const seconds = await device.time(() => plan.run());
  await saveMatrix(options.output, plan.d, {
    signal,
    report: (fraction) => progress.report(`writing ${options.output}`, fraction),
  });
  return describe(device, files, options, plan, seconds, left.shape[1]!);
}

function gemmOptions(options: GemmCommandOptions, c: DeviceArray | undefined): GemmOptions {
  const { alpha, beta, type, accumulate, operator, schedule } = options;
  return { ...given({ c, alpha, beta, type, accumulate, operator, schedule }) };
}

/** The properties that are not undefined. */
function given<T extends object>(all: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as never;
}

function describe(
  device: Device,
  files: Operands<MatrixFile>,
  options: GemmCommandOptions,
  plan: GemmPlan,
  seconds: number,
  depth: number,
): string {
  const { d } = plan;
  const route = routeOf(plan);
  const operations = 2 * d.size * depth;
  if (options.json === true) {
    const matrix = ({ path, type, rows, columns }: MatrixFile, transposed: boolean | undefined): object => ({
      path,
      type: type.name,
      shape: [rows, columns],
      transposed: transposed === true,
    });
    return formatJson({
      device: { kind: device.kind, name: device.name },
      missing: device.missing,
      a: matrix(files.a, options.transposeA),
      b: matrix(files.b, options.transposeB),
      c: files.c === undefined ? null : matrix(files.c, false),
      d: { path: options.output, type: d.type.name, shape: d.shape },
      alpha: options.alpha ?? 1,
      beta: options.beta ?? (files.c === undefined ? 0 : 1),
      route,
      seconds,
      operations,
      ...(options.explain === true ? { explanation: plan.explain() } : {}),
    });
  }
  const rate = seconds > 0 && operations > 0 ? `, ${formatRate(operations / seconds)}` : "";
  const summary = `${options.output}: ${d.type.name} [${d.shape.join(", ")}], ${formatSeconds(seconds)}${rate} on ${device.name} (${route.operator})\n`;
  return options.explain === true ? `${summary}${plan.explain()}\n` : summary;
}
