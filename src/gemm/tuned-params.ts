/**
 * @file Params that tuning found on this device, for the schedule that stages through registers. What the store holds is
 * somebody's file: it is checked for range and fit before anything is made of it.
 */
import type { TargetFacts } from "../target/facts.ts";
import { type StoredValue, type TuningStore, usualStore } from "../tuning/index.ts";
import { fits } from "./heuristics.ts";
import type { GemmKind, OperandKind } from "./kind.ts";
import type { GemmParams } from "./params.ts";
import type { Problem } from "./problem.ts";
import { registerStaged } from "./schedules/assembly.ts";

type PlannedKind = Omit<GemmKind, "params" | "schedule">;
type Size = Pick<Problem, "m" | "n" | "k">;

/** Names a device in the store. */
export function deviceKey({ device }: Pick<Problem, "device">): string {
  return `${device.kind} ${device.name}`;
}

/** Names a product in the store: types, order and alignment of each operand, operator, and sizes by powers of two. */
export function subjectKey(kind: PlannedKind, { m, n, k }: Size): string {
  const operand = ({ type, layout, alignment }: OperandKind): string =>
    `${type.name}/${layout.name}/${alignment}`;
  const magnitude = (size: number): number => Math.round(Math.log2(Math.max(1, size)));
  return [
    "gemm register-staged",
    operand(kind.a),
    operand(kind.b),
    kind.c === undefined ? "-" : operand(kind.c),
    operand(kind.d),
    kind.types.accumulator.name,
    kind.types.a.name,
    kind.operator.name,
    `2^${magnitude(m)} x 2^${magnitude(n)} x 2^${magnitude(k)}`,
  ].join(" ");
}

/** Params as data. */
export function encodeParams({ block, warps, groupRows }: GemmParams): StoredValue {
  return { block: { ...block }, warps: { ...warps }, groupRows };
}

const mostBlock = 1024;

/** Params from data; undefined for anything that is none. */
export function decodeParams(value: StoredValue | undefined): GemmParams | undefined {
  const block = numbers(value, "block", ["m", "n", "k"], mostBlock);
  const warps = numbers(value, "warps", ["m", "n"], 32);
  const order = numbers({ order: value ?? null }, "order", ["groupRows"], mostBlock);
  if (block === undefined || warps === undefined || order === undefined) return undefined;
  const [m, n, k] = block as [number, number, number];
  const [down, across] = warps as [number, number];
  return { block: { m, n, k }, warps: { m: down, n: across }, groupRows: order[0]! };
}

/** Whole numbers from 1 to `most` under the given names of a member. */
function numbers(
  value: StoredValue | undefined,
  member: string,
  names: readonly string[],
  most: number,
): readonly number[] | undefined {
  const held = memberOf(value, member);
  const found = names.map((name) => memberOf(held, name));
  const valid = found.every(
    (number) => typeof number === "number" && Number.isInteger(number) && number >= 1 && number <= most,
  );
  return valid ? (found as readonly number[]) : undefined;
}

function memberOf(value: StoredValue | undefined, name: string): StoredValue | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, name) ? (value as Readonly<Record<string, StoredValue>>)[name] : undefined;
}

/** Whether params came out of a store, for `explain()`. */
const tuned: WeakSet<GemmParams> = new WeakSet();

export function isTuned(params: GemmParams): boolean {
  return tuned.has(params);
}

/** What tuning found for such a product on this device, if it still fits the device. */
export function tunedParams(
  kind: PlannedKind,
  problem: Problem,
  facts: TargetFacts,
  store: TuningStore = usualStore(),
): GemmParams | undefined {
  const params = decodeParams(store.get(deviceKey(problem), subjectKey(kind, problem)));
  if (params === undefined || !takes({ ...kind, schedule: registerStaged.name, params }, facts)) {
    return undefined;
  }
  tuned.add(params);
  return params;
}

function takes(kind: GemmKind, facts: TargetFacts): boolean {
  try {
    return fits(kind, facts, registerStaged);
  } catch {
    // Params that do not fit the operator: another version's, or a file that somebody edited.
    return false;
  }
}
