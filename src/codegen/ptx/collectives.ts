/** @file Operations that a warp does together. All 32 lanes take part, as the kernel language demands. */
import type { IrValue, Operand, OperationNode, ValueType } from "../../ir/nodes.ts";
import type { Attributes } from "../../ir/operations.ts";
import { i32, u32 } from "../../types/types.ts";
import { emitAdd, emitAnd, emitMax, emitMin, emitOr, emitXor } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";
import { builtin } from "./memory.ts";
import { formOf } from "./registers.ts";

const allLanes = "0xFFFFFFFF";

/** Runs `exchange` over every 32 bits of a value. */
export function through32Bits(
  emission: Emission,
  type: ValueType,
  words: readonly string[],
  exchange: (word: string) => string,
): readonly string[] {
  const { cls } = formOf(type);
  return words.map((word) => {
    switch (cls) {
      case "b32":
        return exchange(word);
      case "b16":
        return emission.compute("b16", "cvt.u16.u32", exchange(emission.compute("b32", "cvt.u32.u16", word)));
      case "pred":
        return emission.compute(
          "pred",
          "setp.ne.u32",
          exchange(emission.compute("b32", "selp.b32", 1, 0, word)),
          0,
        );
      case "b64": {
        const halves = [emission.registers.allocate("b32"), emission.registers.allocate("b32")];
        emission.raw(`mov.b64 {${halves.join(", ")}}, ${word}`);
        return emission.compute("b64", "mov.b64", `{${halves.map(exchange).join(", ")}}`);
      }
      default:
        return cls satisfies never;
    }
  });
}

const modes = { index: "idx", up: "up", down: "down", xor: "bfly" } as const;

/** One `shfl.sync`; sources outside the segment give the lane's own value where the hardware checks. */
export function shuffled(
  emission: Emission,
  mode: keyof typeof modes,
  width: number,
  word: string,
  source: string | number,
): string {
  const control = ((32 - width) << 8) | (mode === "up" ? 0 : 31);
  return emission.compute("b32", `shfl.sync.${modes[mode]}.b32`, word, source, control, allLanes);
}

type ShuffleAttributes = Attributes["shuffle"];

export function emitShuffle(emission: Emission, node: OperationNode<"shuffle">): void {
  const [value, source] = node.operands as [Operand, Operand];
  const words = emission.registerWords(value);
  if (source.kind === "constant" && !inSegment(Number(source.value), node.attributes)) {
    emission.define(node.result, words);
    return;
  }
  const inside =
    source.kind === "constant" ? undefined : guardedSource(emission, node.attributes, emission.word(source));
  const exchange = (word: string): string => {
    const other = shuffled(
      emission,
      node.attributes.mode,
      node.attributes.width,
      word,
      emission.word(source),
    );
    return inside === undefined ? other : emission.compute("b32", "selp.b32", other, word, inside);
  };
  emission.define(node.result, through32Bits(emission, value.type, words, exchange));
}

function inSegment(source: number, { width }: ShuffleAttributes): boolean {
  return source >= 0 && source < width;
}

/** The hardware takes sources modulo 32 and, for index and xor, lets them leave the segment: one comparison decides. */
function guardedSource(emission: Emission, { width }: ShuffleAttributes, source: string): string {
  return emission.onceRegister(`inside:${width}:${source}`, () =>
    emission.compute("pred", "setp.lt.u32", source, width),
  );
}

export function emitVote(emission: Emission, node: OperationNode<"vote">): void {
  const [condition] = emission.words(node.operands[0]!);
  emission.define(node.result, [
    emission.compute("pred", `vote.sync.${node.attributes.mode}.pred`, condition!, allLanes),
  ]);
}

export function emitBallot(emission: Emission, node: OperationNode<"ballot">): void {
  const [condition] = emission.words(node.operands[0]!);
  emission.define(node.result, [emission.compute("b32", "vote.sync.ballot.b32", condition!, allLanes)]);
}

export function emitElectOne(emission: Emission, node: OperationNode<"electOne">): void {
  if (!emission.facts.bulkCopy) {
    emission.define(node.result, [emission.compute("pred", "setp.eq.u32", builtin(emission, "lane"), 0)]);
    return;
  }
  emission.needs(80);
  const elected = emission.registers.allocate("pred");
  emission.raw(`elect.sync _|${elected}, ${allLanes}`);
  emission.define(node.result, [elected]);
}

/** 32-bit integers in one instruction from sm_80 on; everything else as a butterfly of shuffles, 16 lanes first. */
export function emitSubgroupReduce(emission: Emission, node: OperationNode<"subgroupReduce">): void {
  const value = node.operands[0]!;
  const { operation } = node.attributes;
  const { type } = value;
  const integer = type.lanes === 1 && (type.element.name === i32.name || type.element.name === u32.name);
  if (integer && emission.capability >= 80) {
    emission.needs(70);
    const suffix =
      operation === "and" || operation === "or" || operation === "xor"
        ? "b32"
        : type.element.name === "i32"
          ? "s32"
          : "u32";
    emission.define(node.result, [
      emission.compute(
        "b32",
        `redux.sync.${operation}.${suffix}`,
        emission.registerWords(value)[0]!,
        allLanes,
      ),
    ]);
    return;
  }
  emission.define(node.result, emission.words(butterfly(emission, value, operation)));
}

type Reduction = Attributes["subgroupReduce"]["operation"];

const combiners = {
  add: emitAdd,
  min: emitMin,
  max: emitMax,
  and: emitAnd,
  or: emitOr,
  xor: emitXor,
} as const;

/** Lane i takes in lane i^16, then i^8 … i^1: every step is symmetric, so all lanes end with the same bits. */
function butterfly(emission: Emission, value: Operand, operation: Reduction): Operand {
  let partial: Operand = value;
  for (let distance = 16; distance >= 1; distance /= 2) {
    const words = emission.registerWords(partial);
    const exchange = (word: string): string => shuffled(emission, "xor", 32, word, distance);
    const other = emission.temporary(value.type, through32Bits(emission, value.type, words, exchange));
    partial = combined(emission, operation, partial, other);
  }
  return partial;
}

function combined(emission: Emission, operation: Reduction, a: Operand, b: Operand): IrValue {
  const result = emission.temporary(a.type, []);
  const common = {
    kind: "operation",
    result,
    operands: [a, b],
    registers: [],
    attributes: {},
    site: 0,
  } as const;
  const combine = combiners[operation] as (emission: Emission, node: OperationNode) => void;
  combine(emission, { ...common, name: operation });
  return result;
}
