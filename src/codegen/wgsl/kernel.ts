/** @file A whole WGSL module: extensions, bindings, the uniform block, helpers, the entry point. */
import { UnsupportedError } from "../../errors.ts";
import type { ConstantTable, KernelIr } from "../../ir/nodes.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type BlockWord, isWebGpuFacts, type ShaderText } from "../../target/webgpu.ts";
import { toBits } from "../../types/bits.ts";
import { i32, index, u32 } from "../../types/types.ts";
import { emitBlock } from "./control-flow.ts";
import { Emission, type EntryBuiltin, type Extension } from "./emission.ts";
import { helperTexts } from "./helpers.ts";
import { matrixVariables } from "./matrix.ts";
import { checkRequirements } from "./requirements.ts";
import { storageType } from "./storage.ts";

const entryPoint = "main";

/**
 * Writes a kernel, lowered by `lowerForWgsl`, as WGSL. Equal kernels give equal text: it holds no positions and no names
 * but its own.
 *
 * Workgroups are one-dimensional whatever the block's shape, so that subgroups are consecutive threads.
 *
 * @param merged groups of pointer slots that share a binding
 * @throws UnsupportedError when the kernel uses what the target lacks
 * @throws CompileError when an operation is malformed for WGSL
 */
export function generateWgsl(
  kernel: KernelIr,
  facts: TargetFacts,
  merged: readonly (readonly number[])[] = [],
): ShaderText {
  if (!isWebGpuFacts(facts)) throw new UnsupportedError(`${facts.name} is no WebGPU target`);
  checkRequirements(kernel, facts);
  const emission = new Emission(kernel, facts, merged, matrixVariables(kernel));
  emitBlock(emission, kernel.body);
  const block = blockWords(emission.slots);
  const { bindings } = emission.storage;
  const body = emission.text();
  const parts = [
    directives(emission),
    structure(block),
    bindings
      .map(({ storage }, i) => {
        const access = storage.writable ? "read_write" : "read";
        return `@group(0) @binding(${i}) var<storage, ${access}> ${storage.name}: ${storageType(storage)};`;
      })
      .concat(`@group(0) @binding(${bindings.length}) var<uniform> args: Arguments;`)
      .join("\n"),
    emission.storage.shared
      .map((storage) => `var<workgroup> ${storage.name}: ${storageType(storage)};`)
      .join("\n"),
    emission.storage.tables.map(({ table }) => tableText(table)).join("\n"),
    ...helperTexts(emission.usedHelpers),
    entry(emission, body),
  ];
  return {
    text: `${parts.filter((part) => part !== "").join("\n\n")}\n`,
    shader: {
      entryPoint,
      bindings: bindings.map(({ storage, slots, alignment }) => ({
        slots,
        writable: storage.writable,
        alignment,
      })),
      block,
      merged: (groups) => generateWgsl(kernel, facts, groups),
    },
  };
}

const extensionOrder: readonly Extension[] = [
  "f16",
  "subgroups",
  "subgroup_size_control",
  "chromium_experimental_subgroup_matrix",
];

function directives(emission: Emission): string {
  if (isPinned(emission)) {
    emission.extensions.add("subgroups");
    emission.extensions.add("subgroup_size_control");
  }
  const enabled = extensionOrder
    .filter((name) => emission.extensions.has(name))
    .map((name) => `enable ${name};`);
  // That all lanes of a subgroup arrive together is the kernel language's own rule; WGSL's analysis asks for the block.
  const quiet = emission.extensions.has("subgroups") ? ["diagnostic(off, subgroup_uniformity);"] : [];
  return [...enabled, ...quiet].join("\n");
}

function isPinned(emission: Emission): boolean {
  const { extensions, features } = emission;
  const uses = extensions.has("subgroups") || extensions.has("chromium_experimental_subgroup_matrix");
  return features.subgroups === "pinned" && uses && isWhole(emission);
}

/** `@subgroup_size` wants whole subgroups. */
function isWhole({ kernel, facts }: Emission): boolean {
  return (kernel.block[0] * kernel.block[1] * kernel.block[2]) % facts.subgroup.width === 0;
}

/** The words of the uniform block: arguments in the order of their slots, then what launches add. */
function blockWords(slots: readonly ArgumentSlot[]): readonly BlockWord[] {
  const words: BlockWord[] = [];
  slots.forEach((slot, i) => {
    switch (slot.kind) {
      case "pointer":
        words.push({ kind: "base", slot: i });
        return;
      case "size":
        words.push({ kind: "slot", slot: i, element: i32 });
        return;
      case "stride":
        words.push({ kind: "slot", slot: i, element: index });
        return;
      case "scalar":
        words.push({ kind: "slot", slot: i, element: slot.element });
        return;
      case "tensorMap":
        return;
      default:
        slot satisfies never;
    }
  });
  const axes = [0, 1, 2] as const;
  return [
    ...words,
    ...axes.map((axis): BlockWord => ({ kind: "grid", axis })),
    { kind: "fold" },
    { kind: "zero" },
  ];
}

function structure(block: readonly BlockWord[]): string {
  const members = block.map((word) => `  ${memberName(word)}: ${memberType(word)},`);
  return ["struct Arguments {", ...members, "}"].join("\n");
}

function memberName(word: BlockWord): string {
  switch (word.kind) {
    case "slot":
      return `slot${word.slot}`;
    case "base":
      return `base${word.slot}`;
    case "grid":
      return `grid${word.axis}`;
    default:
      return word.kind;
  }
}

function memberType(word: BlockWord): string {
  if (word.kind !== "slot") return u32.name;
  const { name } = word.element;
  return name === "f32" || name === "i32" ? name : u32.name;
}

function tableText(table: ConstantTable): string {
  const perWord = 32 / table.element.bits;
  const words: number[] = new Array<number>(Math.max(1, Math.ceil(table.values.length / perWord))).fill(0);
  table.values.forEach((value, i) => {
    words[Math.floor(i / perWord)]! |=
      Number(toBits(table.element, value)) << ((i % perWord) * table.element.bits);
  });
  const list = words.map((word) => `${word >>> 0}u`).join(", ");
  return `const table${table.id} = array<u32, ${words.length}>(${list});`;
}

const builtinTypes: { readonly [Name in EntryBuiltin]: string } = {
  local_invocation_index: "u32",
  workgroup_id: "vec3<u32>",
  subgroup_invocation_id: "u32",
  subgroup_id: "u32",
};

function entry(emission: Emission, body: readonly string[]): string {
  const { kernel, facts } = emission;
  const [x, y, z] = kernel.block;
  emission.builtin("workgroup_id");
  const builtins = (Object.keys(builtinTypes) as EntryBuiltin[])
    .filter((name) => emission.builtins.has(name))
    .map((name) => `@builtin(${name}) ${name}: ${builtinTypes[name]}`);
  const pinned = isPinned(emission) ? ` @subgroup_size(${facts.subgroup.width})` : "";
  return [
    `@compute @workgroup_size(${x * y * z})${pinned}`,
    `fn ${entryPoint}(${builtins.join(", ")}) {`,
    ...blockPosition,
    ...body,
    "}",
  ].join("\n");
}

/** Where the block is. Grids longer than a dispatch may be along one axis are folded over two. */
const blockPosition: readonly string[] = [
  "  var block_id = workgroup_id;",
  "  if (args.fold != 0u) {",
  "    let linear = workgroup_id.y * args.fold + workgroup_id.x;",
  "    if (linear >= args.grid0 * args.grid1 * args.grid2) { return; }",
  "    let line = linear / args.grid0;",
  "    block_id = vec3<u32>(linear % args.grid0, line % args.grid1, line / args.grid1);",
  "  }",
];
