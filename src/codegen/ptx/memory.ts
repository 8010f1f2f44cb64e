/** @file Register variables, loads, stores, atomics, and the values that launches and hardware provide. */
import type { Operand, OperationNode, ValueType } from "../../ir/nodes.ts";
import type { AtomicOperation, BuiltinName, MemoryOrder, MemoryScope } from "../../ir/operations.ts";
import { bool, type ElementType, i32 } from "../../types/types.ts";
import { argumentName, bracketed, type Place, place } from "./addresses.ts";
import type { Emission } from "./emission.ts";
import { formOf, instructionType, laneClass, type RegisterClass, registerBits } from "./registers.ts";

export function emitReadRegister(emission: Emission, node: OperationNode<"readRegister">): void {
  const { cls } = formOf(node.result!.type);
  const copies = emission
    .range(node.registers[0]!)
    .map((register) => emission.compute(cls, `mov.${cls}`, register));
  emission.define(node.result, copies);
}

export function emitWriteRegister(emission: Emission, node: OperationNode<"writeRegister">): void {
  const { cls } = formOf(node.registers[0]!.variable.type);
  const words = emission.words(node.operands[0]!);
  emission.range(node.registers[0]!).forEach((register, index) => {
    emission.effect(`mov.${cls} ${register}, ${words[index]}`);
  });
}

/** Vector prefix and type of a memory instruction that moves a whole value. */
function transfer(type: ValueType, loads: boolean): string {
  const { cls, words } = formOf(type);
  const bits = registerBits(type.element) * type.lanes;
  if (bits === 8) return loads ? (type.element.class === "signed" ? "s8" : "u8") : "b8";
  return words === 1 ? cls : `v${words}.${cls}`;
}

function braced(words: readonly string[]): string {
  return words.length === 1 ? words[0]! : `{${words.join(", ")}}`;
}

const loadCaches = { default: "", streaming: ".cs", volatile: "" } as const;

export function emitLoad(emission: Emission, node: OperationNode<"load">): void {
  const { array, offset, cache } = node.attributes;
  const { space, address } = place(emission, array, node.operands[0]!, offset);
  const { cls, words } = formOf(node.result!.type);
  const registers = Array.from({ length: words }, () => emission.registers.allocate(cls));
  emission.effect(
    `${loadOpcode(array.kind, space, cache)}.${transfer(node.result!.type, true)} ${braced(registers)}, ${bracketed(address)}`,
  );
  emission.define(node.result, registers);
}

function loadOpcode(
  array: "buffer" | "shared" | "constant",
  space: Place["space"],
  cache: keyof typeof loadCaches,
): string {
  if (array === "constant") return space === "const" ? "ld.const" : "ld.global.nc";
  if (cache === "volatile") return `ld.volatile.${space}`;
  return space === "global" ? `ld.global${loadCaches[cache]}` : `ld.${space}`;
}

export function emitStore(emission: Emission, node: OperationNode<"store">): void {
  const { array, offset, cache } = node.attributes;
  const { space, address } = place(emission, array, node.operands[0]!, offset);
  const value = node.operands[1]!;
  const opcode =
    cache === "volatile"
      ? `st.volatile.${space}`
      : `st.${space}${space === "global" ? loadCaches[cache] : ""}`;
  emission.effect(
    `${opcode}.${transfer(value.type, false)} ${bracketed(address)}, ${braced(emission.registerWords(value))}`,
  );
}

export const scopeNames: Readonly<Record<MemoryScope, string>> = {
  block: "cta",
  cluster: "cluster",
  device: "gpu",
  system: "sys",
};

const orderNames: Readonly<Record<MemoryOrder, string>> = {
  relaxed: "relaxed",
  acquire: "acquire",
  release: "release",
  acquireRelease: "acq_rel",
};

/** Operation and type of an atomic, in the spelling of `atom`. */
function atomicKind(operation: AtomicOperation, type: ValueType): string {
  const { element } = type;
  const { cls, lanesPerWord } = formOf(type);
  switch (operation) {
    case "exchange":
      return `exch.${cls}`;
    case "compareExchange":
      return `cas.${cls}`;
    case "and":
    case "or":
    case "xor":
      return `${operation}.${cls}`;
    case "min":
    case "max":
      return `${operation}.${instructionType(element)}`;
    case "add":
      if (registerBits(element) === 16) return `add.noftz.${element.name}${lanesPerWord === 2 ? "x2" : ""}`;
      return `add.${cls === "b64" && element.class === "signed" ? "u64" : instructionType(element)}`;
    default:
      return operation satisfies never;
  }
}

export function emitAtomic(emission: Emission, node: OperationNode<"atomic">): void {
  const { array, offset, operation, order, scope } = node.attributes;
  const { space, address } = place(emission, array, node.operands[0]!, offset);
  const values = node.operands.slice(1);
  const type = values[0]!.type;
  if (scope === "cluster" || type.element.name === "bf16") emission.needs(78);
  const words = values.map((value) => emission.registerWords(value)[0]!).join(", ");
  const tail = `${orderNames[order]}.${scopeNames[scope]}.${space}.${atomicKind(operation, type)}`;
  if (canReduce(emission, node)) {
    emission.effect(`red.${tail} ${bracketed(address)}, ${words}`);
    return;
  }
  const old = emission.registers.allocate(formOf(type).cls);
  emission.effect(`atom.${tail} ${old}, ${bracketed(address)}, ${words}`);
  emission.define(node.result, [old]);
}

/** Nobody wants the old value, and the order is one that a reduction can have. */
function canReduce(emission: Emission, node: OperationNode<"atomic">): boolean {
  const { operation, order } = node.attributes;
  if (operation === "exchange" || operation === "compareExchange") return false;
  if (order !== "relaxed" && order !== "release") return false;
  return node.result === undefined || !emission.uses(node.result);
}

const specialRegisters: Readonly<Partial<Record<BuiltinName, string>>> = {
  threadIndexX: "%tid.x",
  threadIndexY: "%tid.y",
  threadIndexZ: "%tid.z",
  blockIndexX: "%ctaid.x",
  blockIndexY: "%ctaid.y",
  blockIndexZ: "%ctaid.z",
  gridSizeX: "%nctaid.x",
  gridSizeY: "%nctaid.y",
  gridSizeZ: "%nctaid.z",
  lane: "%laneid",
  clusterRank: "%cluster_ctarank",
  clusterIndexX: "%clusterid.x",
  clusterIndexY: "%clusterid.y",
  clusterIndexZ: "%clusterid.z",
};

/** A hardware value, read once at entry. */
export function builtin(emission: Emission, name: BuiltinName): string {
  if (name === "subgroupIndex") return warpIndex(emission);
  if (name.startsWith("cluster")) emission.needs(78);
  return emission.atEntry(name, "b32", (register) => [`mov.u32 ${register}, ${specialRegisters[name]}`]);
}

/** From the thread's index, x fastest: `%warpid` may change while a thread runs. */
function warpIndex(emission: Emission): string {
  const [x, y, z] = emission.kernel.block;
  const linear = (register: string): readonly string[] => [
    ...(z > 1
      ? [
          `mad.lo.s32 ${register}, ${builtin(emission, "threadIndexZ")}, ${y}, ${builtin(emission, "threadIndexY")}`,
        ]
      : []),
    ...(y > 1 || z > 1
      ? [
          `mad.lo.s32 ${register}, ${z > 1 ? register : builtin(emission, "threadIndexY")}, ${x}, ${builtin(emission, "threadIndexX")}`,
        ]
      : []),
    `shr.u32 ${register}, ${y > 1 || z > 1 ? register : builtin(emission, "threadIndexX")}, 5`,
  ];
  return emission.atEntry("subgroupIndex", "b32", linear);
}

export function emitBuiltin(emission: Emission, node: OperationNode<"builtin">): void {
  emission.define(node.result, [builtin(emission, node.attributes.builtin)]);
}

/** Loads a native argument at entry. */
function argument(emission: Emission, slot: number, cls: RegisterClass, type: string): string {
  return emission.atEntry(`argument:${slot}`, cls, (register) => [
    `ld.param.${type} ${register}, [${argumentName(slot)}]`,
  ]);
}

export function emitParameter(emission: Emission, node: OperationNode<"parameter">): void {
  const slot = emission.slot("scalar", node.attributes.parameter);
  emission.define(node.result, [scalarArgument(emission, slot, node.result!.type.element)]);
}

function scalarArgument(emission: Emission, slot: number, element: ElementType): string {
  if (element.name === bool.name) {
    const word = argument(emission, slot, "b32", "u32");
    return emission.atEntry(`truth:argument:${slot}`, "pred", (register) => [
      `setp.ne.u32 ${register}, ${word}, 0`,
    ]);
  }
  const cls = laneClass(element);
  if (registerBits(element) === 8)
    return argument(emission, slot, cls, element.class === "signed" ? "s8" : "u8");
  return argument(emission, slot, cls, cls);
}

export function emitBufferSize(emission: Emission, node: OperationNode<"bufferSize">): void {
  const slot = emission.slot("size", node.attributes.parameter, node.attributes.dimension);
  emission.define(node.result, [argument(emission, slot, laneClass(i32), "b32")]);
}

export function emitBufferStride(emission: Emission, node: OperationNode<"bufferStride">): void {
  const slot = emission.slot("stride", node.attributes.parameter, node.attributes.dimension);
  emission.define(node.result, [argument(emission, slot, "b64", "b64")]);
}

/** Whether an operand is a constant of this value. */
export function isConstant(operand: Operand, value: number | boolean): boolean {
  return operand.kind === "constant" && operand.value === value;
}
