/** @file `tilewright devices`: what is here, and what is missing. */
import type { Command } from "commander";
import { devices, type FoundDevice, open } from "../runtime/open.ts";
import type { MatrixInstruction, TargetFacts } from "../target/facts.ts";
import { formatBytes, formatJson } from "./report.ts";
import type { Terminal } from "./terminal.ts";

/** Adds the command. */
export function addDevicesCommand(program: Command, terminal: Terminal): void {
  program
    .command("devices")
    .summary("list the devices here, and what is missing")
    .description(
      "Lists the devices of this machine, the preferred first, and what is missing with its remedy.",
    )
    .option("--json", "print facts as JSON")
    .action(async ({ json }: { readonly json?: true }) => {
      const { found, missing } = await devices();
      const described: DeviceFacts[] = [];
      for (const device of found) described.push(await describe(device));
      if (json === true) terminal.out(formatJson({ devices: described, missing }));
      else {
        const absent = missing.map(
          ({ kind, reason, remedy }) => `missing     ${kind}: ${reason} ${remedy}\n`,
        );
        terminal.out([...described.map(formatDevice), ...absent].join(""));
      }
    });
}

/** What is said of a device. Sizes in bytes. */
interface DeviceFacts {
  readonly kind: string;
  /** What `--device` takes. */
  readonly selector: string;
  readonly name: string;
  /** What kernels are compiled for. */
  readonly target: string;
  readonly memoryBytes: number;
  readonly freeBytes: number;
  readonly multiprocessors: number;
  readonly subgroupWidth: number;
  readonly threadsPerBlock: number;
  readonly sharedBytesPerBlock: number;
  readonly l2Bytes: number;
  readonly arithmetic: readonly string[];
  readonly storage: readonly string[];
  /** Operands and sums of the matrix instructions. */
  readonly matrixInstructions: readonly string[];
}

async function describe({ kind, device: number, name }: FoundDevice): Promise<DeviceFacts> {
  const device = await open({ kind, device: number });
  try {
    const { facts } = device;
    const { free, total } = device.memory();
    return {
      kind,
      selector: number === 0 ? kind : `${kind}:${number}`,
      name,
      target: facts.name,
      memoryBytes: total,
      freeBytes: free,
      multiprocessors: facts.machine.multiprocessors,
      subgroupWidth: facts.subgroup.width,
      threadsPerBlock: facts.limits.threadsPerBlock,
      sharedBytesPerBlock: facts.limits.sharedBytes,
      l2Bytes: facts.machine.l2Bytes,
      arithmetic: [...facts.arithmetic],
      storage: [...facts.storage],
      matrixInstructions: matrixProducts(facts),
    };
  } finally {
    device.dispose();
  }
}

/** Type combinations of matrix instructions, each once. */
function matrixProducts({ mma, warpgroupMma }: TargetFacts): readonly string[] {
  const product = ({ a, b, accumulator }: MatrixInstruction): string => `${a}·${b}→${accumulator}`;
  return [...new Set([...mma, ...warpgroupMma].map(product))];
}

function formatDevice(device: DeviceFacts): string {
  const rows: readonly (readonly [name: string, value: string])[] = [
    [device.selector, `${device.name}${device.target === device.name ? "" : `, ${device.target}`}`],
    ["  memory", `${formatBytes(device.memoryBytes)}, ${formatBytes(device.freeBytes)} free`],
    [
      "  machine",
      device.kind === "simulator"
        ? `subgroups of ${device.subgroupWidth} lanes, ${formatBytes(device.sharedBytesPerBlock)} of shared memory a block`
        : `${device.multiprocessors} multiprocessors, subgroups of ${device.subgroupWidth} lanes, ` +
          `${formatBytes(device.sharedBytesPerBlock)} of shared memory a block, ${formatBytes(device.l2Bytes)} of L2`,
    ],
    ["  arrays of", device.storage.join(" ")],
    ["  arithmetic", device.arithmetic.filter((type) => type !== "index").join(" ")],
    [
      "  matrices",
      device.matrixInstructions.length === 0 ? "no instructions" : device.matrixInstructions.join(" "),
    ],
  ];
  return rows.map(([name, value]) => `${name.padEnd(14)}${value}\n`).join("");
}
