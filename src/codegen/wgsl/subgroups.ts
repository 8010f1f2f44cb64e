/**
 * @file Operations that the lanes of a subgroup do together, where the hardware has them. Where it has not, lower.ts has
 * replaced them by exchanges through workgroup memory.
 */
import type { Operand, OperationNode } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import { asU32 } from "./addresses.ts";
import type { NodeEmitter } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";
import { isNarrow } from "./types.ts";

function laneId(emission: Emission): string {
  return emission.builtin("subgroup_invocation_id");
}

/** Runs `exchange` over lanes that WGSL's functions take: truth values and bits of narrow types go as u32. */
function throughNumbers(
  emission: Emission,
  element: ElementType,
  lane: string,
  exchange: (lane: string) => string,
): string {
  if (element.class !== "bool") return exchange(lane);
  return emission.let(`${exchange(emission.let(`select(0u, 1u, ${lane})`))} != 0u`);
}

export const emitShuffle: NodeEmitter<"shuffle"> = (emission, node) => {
  const [value, by] = node.operands as [Operand, Operand];
  const { mode, width } = node.attributes;
  const source = sourceLane(emission, mode, width, asU32(emission, by));
  const { element } = value.type;
  const packed = isNarrow(element) && !emission.isNativeHalf(element);
  const atoms = packed ? emission.words(value) : emission.lanes(value);
  const moved = atoms.map((atom) =>
    throughNumbers(emission, element, atom, (lane) => emission.let(`subgroupShuffle(${lane}, ${source})`)),
  );
  emission.define(node.result, packed ? { words: moved } : { lanes: moved });
};

/** Lanes without a source keep their own value. */
function sourceLane(
  emission: Emission,
  mode: OperationNode<"shuffle">["attributes"]["mode"],
  width: number,
  by: string,
): string {
  const lane = laneId(emission);
  const whole = width === emission.facts.subgroup.width;
  const segment = whole ? "0u" : emission.let(`${lane} & ~${width - 1}u`);
  switch (mode) {
    case "index":
      return emission.let(`select(${lane}, ${segment} + ${by}, ${by} < ${width}u)`);
    case "up":
      return emission.let(`select(${lane}, ${lane} - ${by}, ${by} <= ${lane} - ${segment})`);
    case "down":
      return emission.let(`select(${lane}, ${lane} + ${by}, ${by} < ${segment} + ${width}u - ${lane})`);
    case "xor":
      return emission.let(`select(${lane}, ${lane} ^ ${by}, ${by} < ${width}u)`);
    default:
      return mode satisfies never;
  }
}

export const emitVote: NodeEmitter<"vote"> = (emission, node) => {
  const name = node.attributes.mode === "any" ? "subgroupAny" : "subgroupAll";
  emission.extensions.add("subgroups");
  emission.define(node.result, { lanes: [emission.let(`${name}(${emission.lane(node.operands[0]!)})`)] });
};

export const emitBallot: NodeEmitter<"ballot"> = (emission, node) => {
  emission.extensions.add("subgroups");
  emission.define(node.result, {
    lanes: [emission.let(`subgroupBallot(${emission.lane(node.operands[0]!)}).x`)],
  });
};

const reductions = {
  add: "subgroupAdd",
  min: "subgroupMin",
  max: "subgroupMax",
  and: "subgroupAnd",
  or: "subgroupOr",
  xor: "subgroupXor",
} as const;

export const emitSubgroupReduce: NodeEmitter<"subgroupReduce"> = (emission, node) => {
  const { operation } = node.attributes;
  const { element } = node.operands[0]!.type;
  emission.extensions.add("subgroups");
  const lanes = emission.lanes(node.operands[0]!);
  const careful = element.class === "float" && (operation === "min" || operation === "max");
  emission.define(node.result, {
    lanes: lanes.map((lane) =>
      careful
        ? butterfly(emission, element, operation, lane)
        : emission.let(`${reductions[operation]}(${lane})`),
    ),
  });
};

/** WGSL's own least and greatest say nothing of NaN. */
function butterfly(emission: Emission, element: ElementType, operation: "min" | "max", lane: string): string {
  const name = `${operation}_${emission.isNativeHalf(element) ? "f16" : "f32"}` as const;
  let partial = lane;
  for (let distance = emission.facts.subgroup.width / 2; distance >= 1; distance /= 2) {
    const other = emission.let(`subgroupShuffleXor(${partial}, ${distance}u)`);
    partial = emission.let(emission.call(name, partial, other));
  }
  return partial;
}

export const emitElectOne: NodeEmitter<"electOne"> = (emission, node) => {
  emission.define(node.result, { lanes: [emission.let(`${laneId(emission)} == 0u`)] });
};
