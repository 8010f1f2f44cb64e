/**
 * @file Params that tuning found on this device for a schedule. What the store holds is somebody's file: it is checked for
 * range and fit before anything is made of it.
 */
import { TilewrightError } from "../errors.ts";
import { type StoredValue, type TuningStore, usualStore } from "../tuning/index.ts";
import type { OperandKind } from "./kind.ts";
import type { GemmParams } from "./params.ts";
import type { Problem } from "./problem.ts";
import type { GemmLaunch, Schedule, UnscheduledKind } from "./schedules/schedule.ts";

/** Names a device in the store. */
export function deviceKey({ device }: Pick<Problem, "device">): string {
  return `${device.kind} ${device.name}`;
}

/** Names a product in the store: schedule, types, order and alignment of each operand, operator, and sizes by powers of two. */
export function subjectKey(
  { name }: Pick<Schedule, "name">,
  kind: UnscheduledKind,
  { m, n, k }: Pick<Problem, "m" | "n" | "k">,
): string {
  const operand = ({ type, layout, alignment }: OperandKind): string =>
    `${type.name}/${layout.name}/${alignment}`;
  const magnitude = (size: number): number => Math.round(Math.log2(Math.max(1, size)));
  return [
    `gemm ${name}`,
    operand(kind.a),
    operand(kind.b),
    kind.c === undefined ? "-" : operand(kind.c),
    operand(kind.d),
    kind.types.accumulator.name,
    kind.types.a.name,
    ...(kind.types.promotionInterval === undefined ? [] : [`promoted/${kind.types.promotionInterval}`]),
    kind.operator.name,
    `2^${magnitude(m)} x 2^${magnitude(n)} x 2^${magnitude(k)}`,
  ].join(" ");
}

/** Params as data. */
export function encodeParams({ block, warps, groupRows, stages, splitK }: GemmParams): StoredValue {
  return {
    block: { ...block },
    warps: { m: warps.m, n: warps.n },
    groupRows,
    ...(stages === undefined ? {} : { stages }),
    ...(splitK === undefined ? {} : { splitK }),
  };
}

const mostBlock = 1024;

/** Params from data; undefined for anything that is none. */
export function decodeParams(value: StoredValue | undefined): GemmParams | undefined {
  const block = numbers(memberOf(value, "block"), ["m", "n", "k"], mostBlock);
  const warps = numbers(memberOf(value, "warps"), ["m", "n"], 32);
  const order = numbers(value, ["groupRows"], mostBlock);
  const optional = ["stages", "splitK"].filter((name) => memberOf(value, name) !== undefined);
  const given = numbers(value, optional, mostBlock);
  if (block === undefined || warps === undefined || order === undefined || given === undefined) {
    return undefined;
  }
  const [m, n, k] = block as [number, number, number];
  const [down, across] = warps as [number, number];
  const named = Object.fromEntries(optional.map((name, i) => [name, given[i]!]));
  return { block: { m, n, k }, warps: { m: down, n: across }, groupRows: order[0]!, ...named };
}

/** Whole numbers from 1 to `most` under the given names. */
function numbers(
  value: StoredValue | undefined,
  names: readonly string[],
  most: number,
): readonly number[] | undefined {
  const found = names.map((name) => memberOf(value, name));
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

/** What tuning found for such a product on this device, if it still fits. Single products are tuned, no batches. */
export function tunedParams(
  schedule: Schedule,
  kind: UnscheduledKind,
  launch: GemmLaunch,
  store: TuningStore = usualStore(),
): GemmParams | undefined {
  if (launch.batch.scheme !== "single") return undefined;
  const value = store.get(deviceKey(launch.problem), subjectKey(schedule, kind, launch.problem));
  const params = decodeParams(value);
  if (params === undefined || !takes(schedule, kind, launch, params)) return undefined;
  tuned.add(params);
  return params;
}

/** Whether a schedule takes params for a product. */
export function takes(
  schedule: Schedule,
  kind: UnscheduledKind,
  launch: GemmLaunch,
  params: GemmParams,
): boolean {
  try {
    schedule.check({ ...kind, schedule: schedule.name, params }, launch.problem.device.facts, launch);
    return true;
  } catch (error) {
    // Another version's params, or a file that somebody edited.
    if (error instanceof TilewrightError) return false;
    throw error;
  }
}
