/** @file A whole PTX module: header, constant data, entry point with its arguments and directives, body. */
import type { ConstantTable, KernelIr } from "../../ir/nodes.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { toBits } from "../../types/bits.ts";
import { arena, argumentName, constantSpace, tableName } from "./addresses.ts";
import { emitBlock } from "./control-flow.ts";
import { Emission } from "./emission.ts";
import { registerBits } from "./registers.ts";
import { checkRequirements } from "./requirements.ts";

/** Generated text of one kernel. */
export interface PtxModule {
  readonly text: string;
  /** PTX ISA version that the text states, the lowest that has what it uses: "7.8". */
  readonly version: string;
  /** Bytes of dynamic shared memory that a launch must give. */
  readonly sharedBytes: number;
}

/**
 * Writes a kernel as PTX for one target. The entry point has the kernel's name; its arguments are those of
 * `argumentSlots`. Equal kernels give equal text: it holds no positions and no names but the kernel's.
 *
 * @throws UnsupportedError when the kernel uses what the target lacks
 * @throws CompileError when an operation is malformed for PTX
 */
export function generatePtx(kernel: KernelIr, facts: TargetFacts): PtxModule {
  checkRequirements(kernel, facts);
  const emission = new Emission(kernel, facts);
  emission.needs(leastVersion(facts.name, emission.capability));
  if (kernel.cluster !== undefined) emission.needs(78);
  emitBlock(emission, kernel.body, undefined);
  const entry = entryPoint(emission);
  const version = `${Math.floor(emission.version / 10)}.${emission.version % 10}`;
  const parts = [
    `.version ${version}\n.target ${facts.name}\n.address_size 64`,
    ...declarations(emission),
    entry,
  ];
  return { text: `${parts.join("\n\n")}\n`, version, sharedBytes: kernel.sharedBytes };
}

/** The version that brought each target. */
function leastVersion(target: string, capability: number): number {
  if (target.endsWith("a")) return 80;
  if (capability >= 89) return 78;
  if (capability >= 86) return 71;
  return capability >= 80 ? 70 : 63;
}

function declarations(emission: Emission): readonly string[] {
  const { kernel } = emission;
  const texts = emission.texts.map(
    (bytes, index) => `.global .align 1 .b8 $text${index}[${bytes.length}] = {${bytes.join(", ")}};`,
  );
  const print =
    emission.texts.length > 0
      ? [".extern .func (.param .b32 $status) vprintf (.param .b64 $format, .param .b64 $values);"]
      : [];
  const shared =
    kernel.sharedBytes > 0
      ? [`.extern .shared .align ${Math.max(16, kernel.sharedAlignment)} .b8 ${arena}[];`]
      : [];
  return [
    ...print,
    ...texts,
    ...kernel.constants.map((table) => tableDeclaration(emission, table)),
    ...shared,
  ];
}

function tableDeclaration(emission: Emission, table: ConstantTable): string {
  const bits = table.element.bits;
  const values = table.values.map((value) => `0x${toBits(table.element, value).toString(16).toUpperCase()}`);
  return `.${constantSpace(emission)} .align 16 .b${bits} ${tableName(table)}[${table.values.length}] = {${values.join(", ")}};`;
}

function argumentDeclaration(slot: ArgumentSlot, index: number): string {
  const name = argumentName(index);
  switch (slot.kind) {
    case "pointer":
      return `.param .u64 ${name}`;
    case "size":
      return `.param .s32 ${name}`;
    case "stride":
      return `.param .s64 ${name}`;
    case "tensorMap":
      return `.param .align 64 .b8 ${name}[128]`;
    case "scalar":
      return `.param ${scalarType(slot)} ${name}`;
    default:
      return slot satisfies never;
  }
}

function scalarType({ element }: Extract<ArgumentSlot, { kind: "scalar" }>): string {
  if (element.class === "bool") return ".u32";
  return element.name === "f32" || element.name === "f64" ? `.${element.name}` : `.b${registerBits(element)}`;
}

/** Whether some role changes its registers. Roles stand at top level. */
function reallocates(kernel: KernelIr): boolean {
  return kernel.body.statements.some(
    (statement) => statement.kind === "roles" && statement.roles.some((role) => role.registers !== undefined),
  );
}

function directives(kernel: KernelIr): readonly string[] {
  const { cluster } = kernel;
  // Without a number of resident blocks the assembler may ignore setmaxnreg (C7508).
  const resident = kernel.blocksPerMultiprocessor ?? (reallocates(kernel) ? 1 : undefined);
  return [
    `.reqntid ${kernel.block.join(", ")}`,
    ...(resident === undefined ? [] : [`.minnctapersm ${resident}`]),
    ...(cluster === undefined ? [] : [".explicitcluster", `.reqnctapercluster ${cluster.join(", ")}`]),
  ];
}

function entryPoint(emission: Emission): string {
  const { kernel, slots } = emission;
  const args = slots.map((slot, index) => `  ${argumentDeclaration(slot, index)}`).join(",\n");
  const print = emission.printBytes > 0 ? [`.local .align 8 .b8 $print[${emission.printBytes}];`] : [];
  const body = [...emission.registers.declarations(), ...print, ...emission.text(), "ret;"];
  const indented = body.map((line) => (line.endsWith(":") ? line : `  ${line}`));
  return [
    `.visible .entry ${kernel.name}(${args === "" ? "" : `\n${args}\n`})`,
    ...directives(kernel),
    "{",
    ...indented,
    "}",
  ].join("\n");
}
