/** @file print and assert, through the driver's `vprintf`. */
import type { Operand, OperationNode } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import { narrowIntegerToWord } from "./convert.ts";
import type { Emission } from "./emission.ts";
import { widen } from "./halves.ts";
import { lanesOf } from "./lanes.ts";

/** One argument of `vprintf`: its conversion, its width in the argument block, and the register to store. */
interface PrintArgument {
  readonly format: string;
  readonly bytes: 4 | 8;
  readonly register: string;
}

function printArgument(emission: Emission, element: ElementType, lane: string): PrintArgument {
  switch (element.name) {
    case "f64":
      return { format: "%.17g", bytes: 8, register: lane };
    case "f16":
    case "bf16":
    case "f32":
    case "tf32":
    case "e4m3":
    case "e5m2":
      return {
        format: "%.9g",
        bytes: 8,
        register: emission.compute("b64", "cvt.f64.f32", widen(emission, element, lane)),
      };
    case "i64":
    case "index":
      return { format: "%lld", bytes: 8, register: lane };
    case "u64":
      return { format: "%llu", bytes: 8, register: lane };
    case "bool":
      return { format: "%d", bytes: 4, register: emission.compute("b32", "selp.b32", 1, 0, lane) };
    case "i8":
    case "i16":
    case "u8":
    case "u16":
      return { format: "%d", bytes: 4, register: narrowIntegerToWord(emission, element, lane) };
    case "i32":
      return { format: "%d", bytes: 4, register: lane };
    case "u32":
    case "b1":
      return { format: "%u", bytes: 4, register: lane };
    default:
      return element satisfies never;
  }
}

function printArguments(emission: Emission, operand: Operand): readonly PrintArgument[] {
  return lanesOf(emission, operand).map((lane) => printArgument(emission, operand.type.element, lane));
}

function format(args: readonly PrintArgument[]): string {
  const parts = args.map((argument) => argument.format);
  return parts.length === 1 ? parts[0]! : `(${parts.join(", ")})`;
}

export function emitPrint(emission: Emission, node: OperationNode<"print">): void {
  const args = node.operands.map((operand) => printArguments(emission, operand));
  const text = node.attributes.parts.reduce(
    (whole, part, index) =>
      `${whole}${part.replaceAll("%", "%%")}${index < args.length ? format(args[index]!) : ""}`,
    "",
  );
  callPrint(emission, `${text}\n`, args.flat());
}

/** Stores the arguments at their natural alignment and calls `vprintf`. */
function callPrint(emission: Emission, text: string, args: readonly PrintArgument[]): void {
  let offset = 0;
  for (const { bytes, register } of args) {
    offset = Math.ceil(offset / bytes) * bytes;
    emission.effect(`st.local.b${bytes * 8} [$print+${offset}], ${register}`);
    offset += bytes;
  }
  emission.printBytes = Math.max(emission.printBytes, offset, 8);
  const textRegister = emission.compute("b64", "mov.u64", `$text${addText(emission, text)}`);
  const generic = emission.compute("b64", "cvta.global.u64", textRegister);
  const local = emission.compute("b64", "mov.u64", "$print");
  const block = emission.compute("b64", "cvta.local.u64", local);
  emission.call("vprintf", [generic, block]);
}

function addText(emission: Emission, text: string): number {
  const bytes = [...new TextEncoder().encode(text), 0];
  const known = emission.texts.findIndex(
    (other) => other.length === bytes.length && bytes.every((byte, i) => other[i] === byte),
  );
  if (known >= 0) return known;
  emission.texts.push(Uint8Array.from(bytes));
  return emission.texts.length - 1;
}

/** Prints and traps, which ends the launch with an error. */
export function emitAssert(emission: Emission, node: OperationNode<"assert">): void {
  const holds = emission.newLabel();
  emission.raw(`@${emission.word(node.operands[0]!)} bra ${holds}`);
  callPrint(emission, `${node.attributes.message.replaceAll("%", "%%")}\n`, []);
  emission.effect("trap");
  emission.label(holds);
}
