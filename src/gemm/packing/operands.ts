/**
 * @file Packed operands: A or B copied, before each product, to aligned lines and to the order that the fastest schedule
 * wants, as BLAS libraries pack panels (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
 *
 * Every element of A is multiplied n times, so that one more trip through memory soon costs less than a slow way into
 * shared memory does: tensor maps want lines that begin at multiples of 16 bytes, asynchronous copies of 4, and warpgroups
 * want K contiguous for types that are not of 16 bits, and each component of elements over an algebra in a plane of its own.
 */
import { ArgumentError } from "../../errors.ts";
import { byteSize } from "../../lang/index.ts";
import { collapse, type Device, DeviceArray } from "../../runtime/array.ts";
import { algebraMatrix } from "../algebras/matrix.ts";
import { split } from "../layouts/components.ts";
import { denseLayout, type Layout, streamsOf } from "../layouts/layout.ts";
import { chooseSchedule, type GemmOptions, type Resolved, resolve, schedules } from "../resolve.ts";
import type { Schedule } from "../schedules/schedule.ts";
import type { InputOperand, MatrixSource } from "../source.ts";
import { noSurroundings, type PlanStage, type PlanSurroundings } from "../stages.ts";
import { packedAlignment, packingStage } from "./copies.ts";
import { planesStage } from "./planes.ts";

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

/** Whether a product is large enough for copies of its operands to pay, or `options.pack` asks for them. */
export function mayPack(
  { m, n, k }: { readonly m: number; readonly n: number; readonly k: number },
  device: Device,
  { pack, schedule }: Pick<GemmOptions, "pack" | "schedule">,
): boolean {
  if (pack !== undefined) return pack;
  const large = m * n * k >= leastProducts && Math.min(m, n) >= leastReuse;
  return schedule === undefined && large && device.kind !== "simulator";
}

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
  const { m, n, k, device } = given.problem;
  if (given.k === 0 || !mayPack({ m, n, k: k * given.batch.count }, device, options)) return usual;
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
  const packable = (["a", "b"] as const).filter((name) => isPackable(operands[name], problem[name], name));
  const misaligned = packable.filter(
    (name) =>
      kind[name].alignment < packedAlignment ||
      isInterleaved(problem[name]) ||
      problem[name].lines !== undefined,
  );
  const asTheyLie = Object.fromEntries(
    misaligned.map((name) => [
      name,
      problem[name].lines === undefined ? kind[name].layout.major : majorAlongK(name),
    ]),
  );
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

/** Components of an operand's elements. */
function componentsIn({ elements }: Pick<InputOperand, "elements">): number {
  return elements?.algebra.dimension ?? 1;
}

/** Whether the components of an operand's elements lie side by side. */
function isInterleaved(operand: InputOperand): boolean {
  return streamsOf(operand.layout).length !== componentsIn(operand);
}

/**
 * Whether an operand is a dense array, of numbers or of elements with several components, whose matrices lie at one distance;
 * or one whose lines can be copied.
 */
function isPackable(given: DeviceArray | MatrixSource, operand: InputOperand, name: Operand): boolean {
  const { array, outer } = operand;
  if (operand.lines !== undefined) return operand.lines(majorAlongK(name)) !== undefined;
  const dense = given instanceof DeviceArray ? given.rank >= 2 : componentsIn(operand) > 1;
  if (!dense || array === undefined || array.size === 0) return false;
  return collapse(outer?.shape ?? [], [outer?.strides ?? []]).shape.length <= 1;
}

/** How a packed operand lies. */
function packedLayout(operand: InputOperand, major: Major): Layout {
  const components = componentsIn(operand);
  return components === 1 ? denseLayout(major) : split(major, components);
}

function gains({ kind, schedule, ...launch }: Resolved, orders: Orders, options: GemmOptions): boolean {
  const operand = (name: Operand): Resolved["kind"][Operand] => {
    const major = orders[name];
    if (major === undefined) return kind[name];
    return { ...kind[name], layout: packedLayout(launch.problem[name], major), alignment: packedAlignment };
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
    const operand = given.problem[name];
    const copied = operand.lines !== undefined ? packedLines : packedOperand;
    const { workspace, stages, matrix } = (componentsIn(operand) > 1 ? packedElements : copied)(
      operand,
      name,
      major,
    );
    workspaces.push(workspace);
    before.push(...stages);
    return matrix;
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

/** A packed operand, and the copies that fill it. */
export interface PackedOperand {
  readonly workspace: DeviceArray;
  readonly stages: readonly PlanStage[];
  readonly matrix: DeviceArray | MatrixSource;
}

/** Where an operand's matrices lie in their array, and where packed ones will. */
interface Packing {
  readonly matrices: number;
  /** Elements from a matrix of the source to its next. */
  readonly apart: number;
  /** Extents of a packed matrix: lines, elements of a line, elements between lines. */
  readonly lines: number;
  readonly length: number;
  readonly leading: number;
  /** Strides of rows and columns of a packed matrix. */
  readonly inner: readonly [number, number];
  /** Dimensions in front, and their strides where matrices of `size` elements follow each other. */
  readonly outer: readonly number[];
  outerStrides(size: number): readonly number[];
}

function packingOf({ outer, shape, type }: InputOperand, major: Major): Packing {
  const front = outer ?? { shape: [], strides: [] };
  const product = (extents: readonly number[]): number => extents.reduce((p, extent) => p * extent, 1);
  const [rows, columns] = shape;
  const [lines, length] = major === "row" ? [rows, columns] : [columns, rows];
  const unit = packedAlignment / byteSize(type);
  const leading = Math.ceil(length / unit) * unit;
  return {
    matrices: product(front.shape),
    apart: collapse(front.shape, [front.strides]).strides[0]?.[0] ?? 0,
    lines,
    length,
    leading,
    inner: major === "row" ? [leading, 1] : [1, leading],
    outer: front.shape,
    outerStrides: (size) => front.shape.map((_, d) => size * product(front.shape.slice(d + 1))),
  };
}

const asItLies = (major: Major, { layout }: InputOperand): string =>
  layout.major === major ? "" : ", along K";

/** An array of aligned lines for an operand, and the copy that fills it. */
export function packedOperand(
  operand: InputOperand,
  name: Operand,
  major: Major,
): PackedOperand & { readonly matrix: DeviceArray } {
  const { array, shape, leading: apartLines, layout, type } = operand;
  const { device, offset } = array as DeviceArray;
  const { matrices, apart, lines, length, leading, inner, outer, outerStrides } = packingOf(operand, major);
  const workspace = device.empty(type, [matrices, lines, leading]);
  const from = layout.major === major ? [apartLines, 1] : [1, apartLines];
  const stage = packingStage(
    `${name.toUpperCase()} copied to lines of whole ${packedAlignment} bytes${asItLies(major, operand)}`,
    (array as DeviceArray).strided([matrices, lines, length], [apart, ...from], offset),
    workspace.strided([matrices, lines, length], [lines * leading, leading, 1], 0),
  );
  const strides = [...outerStrides(lines * leading), ...inner];
  return { workspace, stages: [stage], matrix: workspace.strided([...outer, ...shape], strides, 0) };
}

/** Aligned lines for an operand of several modes, and the copy that fills them. */
function packedLines(operand: InputOperand, name: Operand, major: Major): PackedOperand {
  const { shape, type } = operand;
  const { source, strides } = operand.lines!(major)!;
  const { lines, leading, inner } = packingOf(operand, major);
  const workspace = source.device.empty(type, [lines, leading]);
  const stage = packingStage(
    `${name.toUpperCase()}'s modes copied to lines of whole ${packedAlignment} bytes`,
    source,
    workspace.strided(source.shape, strides(leading), 0),
  );
  return { workspace, stages: [stage], matrix: workspace.strided(shape, inner, 0) };
}

/**
 * Planes of aligned lines for the components of an operand's elements, and the copies that fill them: one where components
 * lie side by side in lines of the wanted order, else one for each component.
 */
function packedElements(operand: InputOperand, name: Operand, major: Major): PackedOperand {
  const { array, shape, leading: apartLines, layout, type, alignment } = operand;
  const source = array as DeviceArray;
  const { algebra, conjugated } = operand.elements as NonNullable<InputOperand["elements"]>;
  const { dimension } = algebra;
  const { matrices, apart, lines, length, leading, inner, outer, outerStrides } = packingOf(operand, major);
  const plane = lines * leading;
  const workspace = source.device.empty(type, [matrices, dimension, lines, leading]);
  const alike = layout.major === major;
  const upper = name.toUpperCase();
  const componentApart = source.strides.at(-1) as number;
  const neighbours = isInterleaved(operand) ? dimension : 1;
  const from = alike ? [apartLines, neighbours] : [neighbours, apartLines];
  const componentStage = (component: number): PlanStage =>
    packingStage(
      `component ${component} of ${upper} copied to lines of whole ${packedAlignment} bytes${asItLies(major, operand)}`,
      source.strided([matrices, lines, length], [apart, ...from], source.offset + component * componentApart),
      workspace.strided([matrices, lines, length], [dimension * plane, leading, 1], component * plane),
    );
  const stages =
    alike && neighbours > 1
      ? [
          planesStage(
            `components of ${upper} taken apart, to lines of whole ${packedAlignment} bytes`,
            source.strided([matrices, lines, length * dimension], [apart, apartLines, 1]),
            workspace.strided(
              [matrices, dimension, lines, length],
              [dimension * plane, plane, leading, 1],
              0,
            ),
            alignment,
          ),
        ]
      : Array.from({ length: dimension }, (_, component) => componentStage(component));
  const strides = [...outerStrides(dimension * plane), ...inner, plane];
  const matrix = algebraMatrix(algebra, workspace.strided([...outer, ...shape, dimension], strides, 0));
  return { workspace, stages, matrix: conjugated ? matrix.conjugate : matrix };
}
