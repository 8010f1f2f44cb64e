/** @file `tilewright demo`: multiplies the shipped matrices on the best device there is, and checks the result. */
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { TilewrightError } from "../errors.ts";
import { planGemm } from "../gemm/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import { type MatrixFile, openMatrix } from "./array-files.ts";
import { openDevice } from "./device-choice.ts";
import { Progress } from "./progress.ts";
import { deviation, type HostMatrix } from "./reference.ts";
import { formatRoute, formatSeconds, routeOf } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** The folder of the shipped matrices, as far from src/cli/ as from dist/cli/. */
const data = new URL("../../examples/data/", import.meta.url);

/** Adds the command. */
export function addDemoCommand(program: Command, terminal: Terminal): void {
  program
    .command("demo")
    .summary("multiply the shipped example matrices and check the result")
    .description("Multiplies the shipped example matrices on the best device there is and checks the result.")
    .option("--device <name>", "cuda, webgpu or simulator (default: the best present)")
    .action((options: { readonly device?: string }) => runDemo(options.device, terminal));
}

async function runDemo(deviceName: string | undefined, terminal: Terminal): Promise<void> {
  const a = await openMatrix(fileURLToPath(new URL("a.npy", data)));
  const b = await openMatrix(fileURLToPath(new URL("b.npy", data)));
  const progress = new Progress(terminal);
  const device = await openDevice(deviceName, { progress, activity: "multiplying" });
  try {
    await demonstrate(device, a, b, progress, terminal);
  } finally {
    progress.end();
    device.dispose();
    await a.close();
    await b.close();
  }
}

async function demonstrate(
  device: Device,
  fileA: MatrixFile,
  fileB: MatrixFile,
  progress: Progress,
  terminal: Terminal,
): Promise<void> {
  const [a, b] = [await fileA.load(device), await fileB.load(device)];
  using plan = await planGemm(a, b);
  const { d } = plan;
  // A GPU loads code when it first runs; what is timed comes after.
  if (device.kind !== "simulator") plan.run();
  const seconds = await device.time(() => plan.run());
  const found = deviation(await hostMatrix(a), await hostMatrix(b), (await hostMatrix(d)).values, d.type);
  progress.end();
  const describe = ({ type, shape }: DeviceArray): string => `${type.name} ${shape.join(" × ")}`;
  const lines = [
    `D = A · B   ${describe(a)} · ${describe(b)} → ${describe(d)}`,
    `device      ${device.name}`,
    `route       ${formatRoute(routeOf(plan))}`,
    `time        ${formatSeconds(seconds)}`,
    `error       at most ${found.largest.toPrecision(3)} from the product in float64, ${found.worst.toPrecision(2)} of what rounding allows`,
    ...device.missing.flatMap(({ kind, reason, remedy }) => [
      `missing     ${kind}: ${reason}`,
      `            ${remedy}`,
    ]),
  ];
  terminal.out(`${lines.join("\n")}\n`);
  if (!(found.worst <= 1)) {
    throw new TilewrightError(
      "device",
      `the result is wrong: off by ${found.worst.toPrecision(2)} times what rounding allows`,
    );
  }
}

async function hostMatrix(array: DeviceArray): Promise<HostMatrix> {
  const [rows, columns] = array.shape;
  return { rows: rows!, columns: columns!, values: (await array.read()) as Float32Array };
}
