/**
 * @file Grouped products: several of one kind and of any sizes in one launch, in arrays of their own.
 */
import { ArgumentError, DisposedError, TypeMismatchError, UnsupportedError } from "../errors.ts";
import { byteSize, i32, i64, type StorageType } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import type { CompiledKernel } from "../runtime/device.ts";
import { stepArguments } from "./epilogues/step.ts";
import { explainPlan } from "./explain.ts";
import { allExtraArguments, commonAlignment } from "./extras.ts";
import { kernelOf } from "./identity.ts";
import { joinPlans } from "./joined-plans.ts";
import type { GemmKind, OperandKind } from "./kind.ts";
import { factsOf, type Layout } from "./layouts/layout.ts";
import { type GemmPlan, planGemm } from "./plan.ts";
import { type MatrixOperand, overlap } from "./problem.ts";
import { chooseSchedule, type GemmOptions, type Resolved, resolve } from "./resolve.ts";
import type { InputOperand } from "./source.ts";
import { bindStages, noSurroundings } from "./stages.ts";

/** One product of a group. */
export interface GroupedProduct {
  readonly a: DeviceArray;
  readonly b: DeviceArray;
  /** Added to the product, times beta; given for all products or for none. */
  readonly c?: DeviceArray;
  /** Where the result goes; a new row-major array unless given. */
  readonly d?: DeviceArray;
}

/** What all products of a group share. */
export interface GroupedOptions extends Omit<GemmOptions, "c" | "d" | "predicate" | "pack" | "schedule"> {
  readonly schedule?: "multistage" | "register-staged";
}

/** Products ready to be enqueued. */
export interface GroupedPlan {
  /** The results, one for each product. */
  readonly d: readonly DeviceArray[];
  /** Launches that one run makes: 1, or one for each product where no kernel can reach all arrays; 0 for no elements. */
  readonly launches: number;
  /** The kernel; undefined where nothing is launched. */
  readonly compiled: CompiledKernel | undefined;
  /** Enqueues all of them. */
  run(): void;
  /** Says in words which way was taken; see {@link GemmPlan.explain}. */
  explain(): string;
  /** Gives back what the plan holds; the results stay. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/**
 * Plans D = epilogue(alpha · A · B + beta · C) for several A, B, C and D of any sizes, each an array of its own, in one
 * launch of one kernel: tables on the device say where matrices are and how large. Types, orders and components are the
 * same for all; lines are read as wide as the worst aligned of them allow. Transforms find the product's number in their
 * coordinates (`at.batch`). Pointer batches are groups of one size.
 *
 * One launch reaches all arrays on CUDA; elsewhere where the arrays of each operand are parts of one allocation (slices of
 * one array). Otherwise each product is a launch of its own, and `explain()` says so.
 *
 * @throws ArgumentError, TypeMismatchError, UnsupportedError, ShapeError that name the product, before anything reaches the device
 */
export async function planGrouped(
  products: readonly GroupedProduct[],
  options: GroupedOptions = {},
): Promise<GroupedPlan> {
  if (!Array.isArray(products) || products.length === 0) {
    throw new ArgumentError(
      "gemmGrouped takes a list of products, such as [{ a, b }, { a: other, b: weights }], with at least one",
    );
  }
  const resolved: Resolved[] = [];
  const release = (): void => {
    for (const { ownD, result } of resolved) if (ownD) result.dispose();
  };
  try {
    for (const [i, product] of products.entries()) resolved.push(resolveOne(product, i, options));
    const alike = inOneOrder(resolved);
    checkAlike(alike);
    checkResults(alike);
    const tables = tablesOf(alike);
    if (tables === undefined) return await planApart(alike, products, options);
    return await planTogether(alike, tables, options);
  } catch (error) {
    release();
    throw error;
  }
}

/** See {@link planGrouped}. Resolves to the results when the work is enqueued. */
export async function gemmGrouped<const P extends readonly GroupedProduct[]>(
  products: P,
  options: GroupedOptions = {},
): Promise<{ readonly [I in keyof P]: DeviceArray }> {
  const plan = await planGrouped(products, options);
  try {
    plan.run();
  } finally {
    plan.dispose();
  }
  return plan.d as { readonly [I in keyof P]: DeviceArray };
}

function resolveOne({ a, b, c, d }: GroupedProduct, i: number, options: GroupedOptions): Resolved {
  const schedule = "register-staged";
  const { params: _, ...rest } = options;
  const given = {
    ...rest,
    schedule,
    ...(c === undefined ? {} : { c }),
    ...(d === undefined ? {} : { d }),
  } as const;
  let resolved: Resolved;
  try {
    resolved = resolve(a, b, given, true);
  } catch (error) {
    if (error instanceof Error) error.message = `product ${i}: ${error.message}`;
    throw error;
  }
  const { kind, problem, ownD, result } = resolved;
  const operands = [kind.a, kind.b, kind.d, ...(kind.c === undefined ? [] : [kind.c])];
  const refused =
    problem.outer.length > 0
      ? "a batch is a group of its own; give its matrices"
      : operands.some(({ layout }) => factsOf(layout).movement !== "box")
        ? "matrices of a group are dense arrays"
        : kind.steps.some(({ operands: all }) =>
              all.some(({ shape }) => shape !== "number" && shape !== "scalar"),
            )
          ? "steps with vectors or matrices of D's extents have none for products of other sizes; use functions, numbers and scalars"
          : kind.steps.some(({ behaviour }) => behaviour.collects !== undefined)
            ? "steps that reduce are for one product"
            : undefined;
  if (refused === undefined) return resolved;
  if (ownD) result.dispose();
  throw new UnsupportedError(`gemmGrouped: product ${i}: ${refused}`);
}

/** The products with matrices of a single row or column, which lie either way, in the order of the others. */
function inOneOrder(resolved: readonly Resolved[]): readonly Resolved[] {
  const isThin = ({ shape: [rows, columns] }: InputOperand): boolean => rows <= 1 || columns <= 1;
  const layoutOf = (name: Operand): Layout | undefined => {
    const all = resolved.map((one) => operandsOf(one)[name]);
    return (all.find((operand) => operand !== undefined && !isThin(operand)) ?? all[0])?.layout;
  };
  const layouts = { a: layoutOf("a"), b: layoutOf("b"), c: layoutOf("c"), d: layoutOf("d") };
  return resolved.map((one) => {
    const { a, b, c, d } = operandsOf(one);
    const turned = <T extends InputOperand>(operand: T, name: Operand): T => asLying(operand, layouts[name]);
    const own = { a: turned(a, "a"), b: turned(b, "b"), d: turned(d, "d") };
    const addend = c === undefined ? undefined : turned(c, "c");
    const kindOf = ({ type, layout, alignment }: InputOperand): OperandKind => ({ type, layout, alignment });
    return {
      ...one,
      problem: { ...one.problem, a: own.a, b: own.b },
      c: addend,
      d: own.d,
      kind: {
        ...one.kind,
        a: kindOf(own.a),
        b: kindOf(own.b),
        c: addend === undefined ? undefined : kindOf(addend),
        d: kindOf(own.d),
      },
    };
  });
}

function operandsOf({ problem, c, d }: Resolved): {
  readonly a: InputOperand;
  readonly b: InputOperand;
  readonly c: MatrixOperand | undefined;
  readonly d: MatrixOperand;
} {
  return { a: problem.a, b: problem.b, c, d };
}

/** A matrix read in another order where a single row or column lets it be. */
function asLying<T extends InputOperand>(operand: T, layout: Layout | undefined): T {
  const { array, shape, type } = operand;
  if (array === undefined || layout === undefined || layout === operand.layout || array.rank < 2)
    return operand;
  const [lines, length] = layout.major === "row" ? shape : [shape[1], shape[0]];
  const [down, across] = array.strides.slice(-2) as [number, number];
  const [apart, step] = layout.major === "row" ? [down, across] : [across, down];
  if (length > 1 && step !== 1) return operand;
  const leading = lines <= 1 ? Math.max(length, 1) : apart;
  const size = byteSize(type);
  const bytes = [array.offset * size, ...(lines <= 1 ? [] : [leading * size])];
  return { ...operand, layout, leading, alignment: Math.max(size, commonAlignment(bytes)) };
}

/** @throws TypeMismatchError, ArgumentError unless all products are of one kind */
function checkAlike([first, ...others]: readonly Resolved[]): void {
  const describe = ({ type, layout }: OperandKind): string => `${layout.name} ${type.name}`;
  others.forEach(({ kind, problem }, i) => {
    if (problem.device !== first.problem.device)
      throw new ArgumentError(
        `gemmGrouped: product ${i + 1} is on ${problem.device.name}, the first on another device`,
      );
    for (const name of ["a", "b", "c", "d"] as const) {
      const [one, other] = [first.kind[name], kind[name]];
      if (one === undefined && other === undefined) continue;
      if (one === undefined || other === undefined)
        throw new ArgumentError(`gemmGrouped: C is given for all products or for none`);
      if (one.type === other.type && one.layout === other.layout) continue;
      throw new TypeMismatchError(
        `gemmGrouped: ${name.toUpperCase()} of product ${i + 1} is ${describe(other)}, of the first ${describe(one)}; products of one kind go together`,
      );
    }
  });
}

/** @throws ArgumentError where one product's D shares memory with what another reads or writes */
function checkResults(resolved: readonly Resolved[]): void {
  const readers = new Map<
    unknown,
    { readonly operand: InputOperand; readonly of: number; readonly name: string }[]
  >();
  resolved.forEach(({ problem, c, d }, of) => {
    const all = { A: problem.a, B: problem.b, C: c, D: d };
    for (const [name, operand] of Object.entries(all)) {
      if (operand?.array === undefined) continue;
      const list = readers.get(operand.array.allocation) ?? [];
      list.push({ operand, of, name });
      readers.set(operand.array.allocation, list);
    }
  });
  resolved.forEach(({ d }, i) => {
    for (const { operand, of, name } of readers.get(d.array.allocation) ?? []) {
      if (of === i || !overlap(d, operand)) continue;
      throw new ArgumentError(
        `gemmGrouped: D of product ${i} overlaps ${name} of product ${of}; products of a group run at once`,
      );
    }
  });
}

type Operand = "a" | "b" | "c" | "d";
const operandNames = ["a", "b", "c", "d"] as const;

/** An operand's matrices: the array that positions count from, and where each begins, in elements. */
interface Places {
  readonly base: DeviceArray;
  readonly starts: readonly number[];
  readonly near: boolean;
}

type Tables = Partial<Readonly<Record<Operand, Places>>>;

/** Where all matrices are; undefined where no kernel can reach all those of an operand. */
function tablesOf(resolved: readonly Resolved[]): Tables | undefined {
  const { device } = resolved[0]!.problem;
  const tables: Partial<Record<Operand, Places>> = {};
  for (const name of operandNames) {
    const operands = resolved.map((one) => operandsOf(one)[name]);
    if (operands[0] === undefined) continue;
    const places = placesOf(device, operands as readonly InputOperand[]);
    if (places === undefined) return undefined;
    tables[name] = places;
  }
  return tables;
}

function placesOf(device: Device, operands: readonly InputOperand[]): Places | undefined {
  const arrays = operands.map(({ array }) => array as DeviceArray);
  const near = arrays.every(({ allocation }) => allocation === arrays[0]!.allocation);
  const size = byteSize(arrays[0]!.type);
  if (!near) {
    const bytes = arrays.map((array) => device.bytesBetween(arrays[0]!, array));
    if (bytes.includes(undefined)) return undefined;
    return {
      base: arrays[0]!.strided([Math.min(1, arrays[0]!.size)], [1]),
      starts: bytes.map((one) => (one as number) / size),
      near,
    };
  }
  const first = Math.min(...arrays.map(({ offset }) => offset));
  const end = Math.max(
    ...operands.map(({ array, leading, layout, shape: [rows, columns] }) => {
      const [lines, length] = layout.major === "row" ? [rows, columns] : [columns, rows];
      return (
        (array as DeviceArray).offset + (lines === 0 || length === 0 ? 0 : (lines - 1) * leading + length)
      );
    }),
  );
  return {
    base: arrays[0]!.strided([end - first], [1], first),
    starts: arrays.map(({ offset }) => offset - first),
    near,
  };
}

/** The kind of all products: each operand aligned as its worst aligned matrix, positions included. */
function groupedKind(resolved: readonly Resolved[], near: boolean): Omit<GemmKind, "params" | "schedule"> {
  const worst = (name: Operand): OperandKind | undefined => {
    const all = resolved.map(({ kind }) => kind[name]);
    const [first] = all;
    if (first === undefined) return undefined;
    return { ...first, alignment: Math.min(...all.map((one) => one!.alignment)) };
  };
  const { params: _, schedule: __, ...kind } = resolved[0]!.kind;
  return {
    ...kind,
    a: worst("a") as OperandKind,
    b: worst("b") as OperandKind,
    c: worst("c"),
    d: worst("d") as OperandKind,
    batch: "grouped",
    places: near ? "near" : "anywhere",
  };
}

/** The product with most elements, as often as the group's elements are those of such. */
function typical(resolved: readonly Resolved[]): Resolved {
  const area = ({ problem }: Resolved): number => problem.m * problem.n;
  const largest = resolved.reduce((most, one) => (area(one) > area(most) ? one : most));
  const total = resolved.reduce((sum, one) => sum + area(one), 0);
  const count = area(largest) === 0 ? 0 : Math.ceil(total / area(largest));
  return { ...largest, batch: { scheme: "grouped", count, strides: { a: 0, b: 0, c: 0, d: 0 } } };
}

async function planTogether(
  resolved: readonly Resolved[],
  tables: Tables,
  options: GroupedOptions,
): Promise<GroupedPlan> {
  const launch = typical(resolved);
  const { device } = launch.problem;
  const near = Object.values(tables).every((places) => places.near);
  const unscheduled = groupedKind(resolved, near);
  const { schedule, refused } = chooseSchedule(unscheduled, launch, options, device.facts);
  const params = options.params ?? schedule.params(unscheduled, launch, device.facts);
  const kind: GemmKind = { ...unscheduled, schedule: schedule.name, params };
  schedule.check(kind, device.facts, launch);
  const { prefix, sizes, places } = entriesOf(resolved, tables, params);
  const tiles = prefix.at(-1) as number;
  if (tiles >= 2 ** 31)
    throw new UnsupportedError(`gemmGrouped: ${tiles} tiles; a launch has fewer than 2^31`);
  if (near && places.some((place) => place >= 2 ** 31))
    throw new UnsupportedError("gemmGrouped: matrices lie 2^31 elements apart or more in one allocation");
  const made: DeviceArray[] = [];
  const table = (type: StorageType, values: readonly number[]): DeviceArray => {
    const array = device.array(type, [values.length], type === i64 ? values.map(BigInt) : values);
    made.push(array);
    return array;
  };
  try {
    const { kernel, fresh } = kernelOf(kind, schedule);
    const bases = Object.fromEntries(Object.entries(tables).map(([name, { base }]) => [name, base]));
    const stage = {
      purpose: "products",
      kernel,
      arguments: {
        ...groupArguments(kind, launch),
        ...bases,
        problems: resolved.length,
        tiles: table(i32, prefix),
        sizes: table(i32, sizes),
        places: table(near ? i32 : i64, places),
      },
      blocks: tiles,
    };
    const stages = await bindStages(device, tiles === 0 ? [] : [stage], options.signal);
    const told: Resolved = { ...launch, kind, refused, schedule: { ...schedule, blocks: () => tiles } };
    let disposed = false;
    const dispose = (): void => {
      if (disposed) return;
      disposed = true;
      stages.dispose();
      for (const array of made) array.dispose();
    };
    return {
      d: resolved.map(({ result }) => result),
      launches: tiles === 0 ? 0 : 1,
      compiled: stages.compiled[0],
      run() {
        if (disposed) throw new DisposedError("this plan was disposed");
        stages.launch();
      },
      explain: () =>
        `${headline(resolved)} in one launch, the largest of them\n${explainPlan(told, stages.compiled[0], fresh, noSurroundings)}`,
      dispose,
      [Symbol.dispose]: dispose,
    };
  } catch (error) {
    for (const array of made) array.dispose();
    throw error;
  }
}

/** Arguments of the kernel but for tables and arrays. */
function groupArguments(
  kind: GemmKind,
  { alpha, beta, steps, extras }: Resolved,
): Readonly<Record<string, unknown>> {
  return {
    alpha,
    ...(kind.c === undefined ? {} : { beta }),
    ...stepArguments(steps),
    ...allExtraArguments(extras),
  };
}

/** The tables' entries; see grouped-work.ts. */
function entriesOf(
  resolved: readonly Resolved[],
  tables: Tables,
  { block }: GemmKind["params"],
): {
  readonly prefix: readonly number[];
  readonly sizes: readonly number[];
  readonly places: readonly number[];
} {
  const prefix = [0];
  const sizes: number[] = [];
  const places: number[] = [];
  resolved.forEach(({ problem, columns, k, c, d }, i) => {
    const { m, n } = problem;
    const tiles = columns === 0 ? 0 : Math.ceil(m / block.m) * Math.ceil(n / block.n);
    prefix.push((prefix.at(-1) as number) + tiles);
    sizes.push(...[m, n, k, columns]);
    const leading = { a: problem.a.leading, b: problem.b.leading, c: c?.leading ?? 0, d: d.leading };
    const entries = operandNames.flatMap((name) => [tables[name]?.starts[i] ?? 0, leading[name]]);
    places.push(...entries);
  });
  return { prefix, sizes, places };
}

function headline(resolved: readonly Resolved[]): string {
  return `${resolved.length} products`;
}

/** A launch for each product. */
async function planApart(
  resolved: readonly Resolved[],
  products: readonly GroupedProduct[],
  options: GroupedOptions,
): Promise<GroupedPlan> {
  const { device } = resolved[0]!.problem;
  const joined = await joinPlans(
    resolved[0]!.result,
    `${headline(resolved)} in a launch each: on ${device.name} a kernel reaches one allocation for each operand; slices of one array would go in one launch`,
    products.map(({ a, b, c }, i) => (): Promise<GemmPlan> => {
      const d = resolved[i]!.result;
      return planGemm(a, b, { ...options, d, ...(c === undefined ? {} : { c }) });
    }),
  );
  const { run, explain, dispose } = joined;
  return {
    d: resolved.map(({ result }) => result),
    launches: joined.products.filter(({ compiled }) => compiled !== undefined).length,
    compiled: joined.products[0]?.compiled,
    run,
    explain,
    dispose,
    [Symbol.dispose]: dispose,
  };
}
