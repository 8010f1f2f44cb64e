/** @file `tilewright gemm`: multiplies matrices in `.npy` files. */
import type { Command } from "commander";
import { ShapeError } from "../errors.ts";
import {
  type AlgebraMatrix,
  algebraMatrix,
  bias,
  type GemmOptions,
  type GemmPlan,
  type OperatorFactory,
  planGemm,
  residual,
  semiringOperator,
} from "../gemm/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import type { ElementType, StorageType } from "../types/index.ts";
import {
  type ArrayFile,
  checkWritable,
  type MatrixFile,
  openMatrix,
  openVector,
  saveArray,
} from "./array-files.ts";
import { openDevice } from "./device-choice.ts";
import { UsageError } from "./failure.ts";
import { interruptible } from "./interrupt.ts";
import {
  type Activation,
  type Arithmetic,
  activationNamed,
  arithmeticNamed,
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
  readonly bias?: string;
  readonly activation?: Activation;
  readonly residual?: string;
  readonly algebra?: Arithmetic;
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
    .description(
      "D = activation(alpha · A · B + beta · C + bias) + residual, of matrices in .npy files, in one kernel",
    )
    .argument("<A.npy>", "the left matrix, m x k")
    .argument("<B.npy>", "the right matrix, k x n")
    .requiredOption("-o, --output <D.npy>", "where the result goes")
    .option("--c <C.npy>", "a matrix to add, m x n")
    .option("--alpha <number>", "factor of the product (default: 1)", factor)
    .option("--beta <number>", "factor of C (default: 1)", factor)
    .option("--transpose-a", "take A transposed")
    .option("--transpose-b", "take B transposed")
    .option("--bias <v.npy>", "a vector of n elements to add to every row")
    .option("--activation <name>", "relu, leaky-relu, gelu, gelu-tanh, silu, …", activationNamed)
    .option("--residual <R.npy>", "a matrix to add after the activation, m x n")
    .option(
      "--algebra <name>",
      "complex, complex3m or dual (components along a third dimension of the files), max-plus, min-plus or or-and",
      arithmeticNamed,
    )
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

/** The files of a multiplication. */
interface Files {
  readonly a: MatrixFile;
  readonly b: MatrixFile;
  readonly c: MatrixFile | undefined;
  readonly bias: ArrayFile | undefined;
  readonly residual: MatrixFile | undefined;
}

async function runGemm(a: string, b: string, options: GemmCommandOptions, terminal: Terminal): Promise<void> {
  if (options.beta !== undefined && options.c === undefined) {
    throw new UsageError("--beta is the factor of C: give --c as well, or leave --beta out");
  }
  if (options.algebra !== undefined && options.operator !== undefined && "semiring" in options.algebra) {
    throw new UsageError(
      `--algebra ${options.algebra.name} has an operator of its own: leave --operator out`,
    );
  }
  await withFiles(a, b, options, async (files) => {
    checkShapes(files, options);
    await checkWritable(options.output);
    terminal.out(await interruptible((signal) => multiplyFiles(files, options, terminal, signal)));
  });
}

/** Opens files for the time that `work` takes. */
async function withFiles(
  a: string,
  b: string,
  { c, bias: offsets, residual: other, opaqueAs, algebra }: GemmCommandOptions,
  work: (files: Files) => Promise<void>,
): Promise<void> {
  const reading = opaqueAs === undefined ? {} : { opaqueAs };
  const components = algebra !== undefined && "algebra" in algebra ? algebra.algebra.dimension : undefined;
  const opened: ArrayFile[] = [];
  const keep = async <F extends ArrayFile>(opening: Promise<F>): Promise<F> => {
    const file = await opening;
    opened.push(file);
    return file;
  };
  const matrix = (path: string): Promise<MatrixFile> => keep(openMatrix(path, reading, components));
  try {
    await work({
      a: await matrix(a),
      b: await matrix(b),
      c: c === undefined ? undefined : await matrix(c),
      bias: offsets === undefined ? undefined : await keep(openVector(offsets, reading)),
      residual: other === undefined ? undefined : await matrix(other),
    });
  } finally {
    for (const file of opened) await file.close();
  }
}

/** Rows and columns as they are multiplied. */
function extents({ rows, columns }: MatrixFile, transposed: boolean | undefined): readonly [number, number] {
  return transposed === true ? [columns, rows] : [rows, columns];
}

function checkShapes({ a, b, c, bias: offsets, residual: other }: Files, options: GemmCommandOptions): void {
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
  for (const [name, file] of [["C", c] as const, ["the residual", other] as const]) {
    if (file === undefined || (file.rows === m && file.columns === n)) continue;
    throw new ShapeError(
      `${file.path} is ${file.rows} x ${file.columns}; the product is ${m} x ${n}, and ${name} must be too`,
    );
  }
  if (offsets !== undefined && offsets.shape[0] !== n) {
    throw new ShapeError(
      `${offsets.path} has ${offsets.shape[0]} elements; the product has ${n} columns, and so must the bias`,
    );
  }
}

/** Opens a device and multiplies there; gives what is to be printed. */
async function multiplyFiles(
  files: Files,
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
  files: Files,
  options: GemmCommandOptions,
  { terminal, progress, signal }: Supervision,
): Promise<string> {
  const load = (file: ArrayFile): Promise<DeviceArray> =>
    file.load(device, { signal, report: (fraction) => progress.report(`reading ${file.path}`, fraction) });
  const { algebra } = options;
  const matrix = async (file: MatrixFile): Promise<DeviceArray | AlgebraMatrix> => {
    const array = await load(file);
    return algebra !== undefined && "algebra" in algebra ? algebraMatrix(algebra.algebra, array) : array;
  };
  const a = await matrix(files.a);
  const b = await matrix(files.b);
  const c = files.c === undefined ? undefined : await matrix(files.c);
  const steps = [
    ...(files.bias === undefined ? [] : [bias(await load(files.bias))]),
    ...(options.activation === undefined ? [] : [options.activation.step]),
    ...(files.residual === undefined ? [] : [residual(await load(files.residual))]),
  ];
  const left = options.transposeA === true ? a.transposed : a;
  const right = options.transposeB === true ? b.transposed : b;
  const epilogue = steps.length === 0 ? {} : { epilogue: steps };
  using plan = await planGemm(left, right, { ...gemmOptions(options, c), ...epilogue, signal });
  // Said only when all is well: a failure says one line.
  if (device.missing.length > 0 && device.kind === "simulator") {
    terminal.error("tilewright: no GPU can be used, so the simulator works; `tilewright devices` says why\n");
  }
  const seconds = await device.time(() => plan.run());
  await saveArray(options.output, plan.d, {
    signal,
    report: (fraction) => progress.report(`writing ${options.output}`, fraction),
  });
  return describe(device, files, options, plan, seconds, left.shape[1]!);
}

function gemmOptions(options: GemmCommandOptions, c: DeviceArray | AlgebraMatrix | undefined): GemmOptions {
  const { alpha, beta, type, accumulate, schedule, algebra } = options;
  const operator =
    algebra !== undefined && "semiring" in algebra ? semiringOperator(algebra.semiring) : options.operator;
  return { ...given({ c, alpha, beta, type, accumulate, operator, schedule }) };
}

/** The properties that are not undefined. */
function given<T extends object>(all: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as never;
}

function describe(
  device: Device,
  files: Files,
  options: GemmCommandOptions,
  plan: GemmPlan,
  seconds: number,
  depth: number,
): string {
  const { d } = plan;
  const route = routeOf(plan);
  const operations = 2 * d.shape[0]! * d.shape[1]! * depth;
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
      bias: files.bias?.path ?? null,
      activation: options.activation?.name ?? null,
      residual: files.residual?.path ?? null,
      algebra: options.algebra?.name ?? null,
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
