/**
 * @file Packed operands: A or B copied, before each product, to aligned lines and to the order that the fastest schedule
 * wants, as BLAS libraries pack panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
 *
 * Every element of A is multiplied n times, so that one more trip through memory soon costs less than a slow way into
 * shared memory does: tensor maps want lines that begin at multiples of 16 bytes, asynchronous copies of 4, and warpgroups
 * want K contiguous for types that are not of 16 bits.
 */
import { ArgumentError } from "../../errors.ts";
import { byteSize } from "../../lang/index.ts";
import { collapse, DeviceArray } from "../../runtime/array.ts";
import { denseLayout } from "../layouts/layout.ts";
import { chooseSchedule, type GemmOptions, type Resolved, resolve, schedules } from "../resolve.ts";
import type { Schedule } from "../schedules/schedule.ts";
import type { InputOperand, MatrixSource } from "../source.ts";
import { noSurroundings, type PlanStage, type PlanSurroundings } from "../stages.ts";
import { packedAlignment, packingStage } from "./copies.ts";

type Operand = "a" | "b";
type Major = "row" | "column";

/** For each operand the order that it is to be packed in, where it is. */
type Orders = Partial<Readonly<Record<Operand, Major>>>;

/** A product of packed operands and the copies before it. */
export interface PackedProduct {
  readonly resolved: Resolved;
  readonly around: PlanSurroundings;
}

/** Products below are over before a copy has started. */
const leastProducts = 2 ** 30;
/** How often each element of a packed operand is multiplied at least. */
const leastReuse = 512;
/** Below, multistage's copies of an operand pass through registers. */
const asynchronousAlignment = 4;

/**
 * The product with its operands packed, where that opens a faster schedule and the product is large enough to gain;
 * `options.pack` says otherwise. The given product where nothing is packed.
 * @throws ArgumentError where `options.pack` is true and nothing can be gained
 */
export function packOperands(
  given: Resolved,
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  options: GemmOptions,
): PackedProduct {
  const usual: PackedProduct = { resolved: given, around: noSurroundings };
  if (options.pack === false || given.k === 0) return usual;
  const { m, n, k, device } = given.problem;
  const large = m * n * k * given.batch.count >= leastProducts && Math.min(m, n) >= leastReuse;
  if (options.pack !== true && (options.schedule !== undefined || !large || device.kind === "simulator"))
    return usual;
  const orders = ordersFor(given, { a, b }, options);
  if (orders === undefined) {
    if (options.pack !== true) return usual;
    throw new ArgumentError(
      "gemm: pack is true, and no faster schedule would serve packed operands; leave it out, or see explain()",
    );
  }
  return packed(given, { a, b }, options, orders);
}

/** Orders that make a faster schedule serve; undefined where none does. */
function ordersFor(
  given: Resolved,
  operands: Readonly<Record<Operand, DeviceArray | MatrixSource>>,
  options: GemmOptions,
): Orders | undefined {
  const { kind, problem } = given;
  const packable = (["a", "b"] as const).filter((name) => isPackable(operands[name], problem[name]));
  const misaligned = packable.filter((name) => kind[name].alignment < packedAlignment);
  const asTheyLie = Object.fromEntries(misaligned.map((name) => [name, kind[name].layout.major]));
  const alongK = Object.fromEntries(
    packable
      .filter((name) => misaligned.includes(name) || kind[name].layout.major !== majorAlongK(name))
      .map((name) => [name, majorAlongK(name)]),
  );
  return [asTheyLie, alongK].find(
    (orders) => Object.keys(orders).length > 0 && gains(given, orders as Orders, options),
  ) as Orders | undefined;
}

function majorAlongK(name: Operand): Major {
  return name === "a" ? "row" : "column";
}

/** Whether an operand is a dense array whose matrices lie at one distance. */
function isPackable(given: DeviceArray | MatrixSource, { outer }: InputOperand): boolean {
  if (!(given instanceof DeviceArray) || given.rank < 2 || given.size === 0) return false;
  return collapse(outer?.shape ?? [], [outer?.strides ?? []]).shape.length <= 1;
}

function gains({ kind, schedule, ...launch }: Resolved, orders: Orders, options: GemmOptions): boolean {
  const operand = (name: Operand): Resolved["kind"][Operand] => {
    const major = orders[name];
    if (major === undefined) return kind[name];
    return { ...kind[name], layout: denseLayout(major), alignment: packedAlignment };
  };
  const changed = { ...kind, a: operand("a"), b: operand("b") };
  const facts = launch.problem.device.facts;
  const { schedule: other } = chooseSchedule(changed, launch, options, facts);
  const place = (one: Schedule): number => schedules.indexOf(one);
  if (place(other) < place(schedule)) return true;
  const throughRegisters = Object.keys(orders).some(
    (name) => kind[name as Operand].alignment < asynchronousAlignment,
  );
  return other === schedule && schedule.name === "multistage" && throughRegisters;
}

function packed(
  given: Resolved,
  operands: Readonly<Record<Operand, DeviceArray | MatrixSource>>,
  options: GemmOptions,
  orders: Orders,
): PackedProduct {
  const workspaces: DeviceArray[] = [];
  const before: PlanStage[] = [];
  const pack = (name: Operand): DeviceArray | MatrixSource => {
    const major = orders[name];
    if (major === undefined) return operands[name];
    const { workspace, stage, array } = packedOperand(given.problem[name], name, major);
    workspaces.push(workspace);
    before.push(stage);
    return array;
  };
  try {
    const resolved = resolve(pack("a"), pack("b"), { ...options, d: options.d ?? given.result });
    return {
      resolved: { ...resolved, ownD: given.ownD },
      around: { workspaces, arguments: {}, before, after: [] },
    };
  } catch (error) {
    for (const array of workspaces) array.dispose();
    throw error;
  }
}

/** An array of aligned lines for an operand, and the copy that fills it. */
export function packedOperand(
  { array: source, outer, shape, leading, layout, type }: InputOperand,
  name: Operand,
  major: Major,
): { readonly workspace: DeviceArray; readonly stage: PlanStage; readonly array: DeviceArray } {
  const { device, offset } = source as DeviceArray;
  const matrices = outer ?? { shape: [], strides: [] };
  const count = matrices.shape.reduce((product, extent) => product * extent, 1);
  const apart = collapse(matrices.shape, [matrices.strides]).strides[0]?.[0] ?? 0;
  const [rows, columns] = shape;
  const [lines, length] = major === "row" ? [rows, columns] : [columns, rows];
  const unit = packedAlignment / byteSize(type);
  const packedLeading = Math.ceil(length / unit) * unit;
  const workspace = device.empty(type, [count, lines, packedLeading]);
  const from = layout.major === major ? [leading, 1] : [1, leading];
  const stage = packingStage(
    `${name.toUpperCase()} copied to lines of whole ${packedAlignment} bytes${layout.major === major ? "" : ", along K"}`,
    (source as DeviceArray).strided([count, lines, length], [apart, ...from], offset),
    workspace.strided([count, lines, length], [lines * packedLeading, packedLeading, 1], 0),
  );
  const inner = major === "row" ? [packedLeading, 1] : [1, packedLeading];
  const outerStrides = matrices.shape.map(
    (_, d) => lines * packedLeading * matrices.shape.slice(d + 1).reduce((p, extent) => p * extent, 1),
  );
  const array = workspace.strided([...matrices.shape, rows, columns], [...outerStrides, ...inner], 0);
  return { workspace, stage, array };
}
