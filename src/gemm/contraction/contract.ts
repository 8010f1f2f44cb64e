/**
 * @file Contractions: products of arrays of any rank, as matrix products over folded modes.
 */
import { ArgumentError, ShapeError, UnsupportedError } from "../../errors.ts";
import { type Device, DeviceArray, repeatsElements } from "../../runtime/array.ts";
import { seesCoordinates } from "../coordinate-free.ts";
import { type JoinedPlan, joinPlans } from "../joined-plans.ts";
import { type FoldedMode, folded } from "../layouts/folded.ts";
import { mayPack } from "../packing/operands.ts";
import { type GemmPlan, planGemm } from "../plan.ts";
import { operatorTypes, outputTypeOf } from "../problem.ts";
import type { GemmOptions } from "../resolve.ts";
import { instructionOf } from "../schedules/warpgroup-shape.ts";
import type { MatrixSource } from "../source.ts";
import {
  extentOf,
  fuseAndSort,
  fuseInOrder,
  type Mode,
  type ModeArray,
  modesIn,
  outerModes,
} from "./modes.ts";
import { type IndexRole, readSpecification, type Specification } from "./specification.ts";

/** What `contract` can be told: what {@link gemm} can, with C and D of D's own rank. */
export interface ContractionOptions extends Omit<GemmOptions, "c" | "d" | "predicate" | "gate"> {
  /** Added to the contraction, times beta; dimensions as D's, any strides. */
  readonly c?: DeviceArray;
  /** Where the result goes, any strides without overlap; a new contiguous array unless given. May be `c` itself. */
  readonly d?: DeviceArray;
}

/** A contraction ready to be enqueued. */
export type ContractionPlan = JoinedPlan;

/** Modes by role, fastest first, and which way the product is made. */
interface Folding {
  readonly rows: readonly Mode[];
  readonly columns: readonly Mode[];
  readonly summed: readonly Mode[];
  readonly batch: readonly Mode[];
  /** D's neighbours are in rows: then the transposed product is made, whose lines are D's. */
  readonly exchanged: boolean;
}

type Arrays = Readonly<Record<"a" | "b" | "d", DeviceArray>> & { readonly c: DeviceArray | undefined };

/**
 * D = alpha · Σ A · B + beta · C over the indices that A and B have and D has not: `contract("bda,dc->abc", a, b)` is
 * D[a, b, c] = Σ_d A[b, d, a] · B[d, c]. Arrays of any rank and strides (views cost nothing); an index in A, B and D counts
 * through a batch. Resolves to D when the work is enqueued.
 *
 * Indices are folded into rows (in A and D), columns (in B and D) and K of a matrix product. Where all arrays step through
 * neighbouring indices as through one they are one; if each group is, this is {@link gemm} in every respect. Types, sums and
 * rounding are its too. Options that see coordinates or take arrays of D's shape (`bias`, functions of two parameters) see D as
 * a matrix: rows count through A's indices of D in D's order, the last fastest, columns through B's.
 *
 * @throws ArgumentError naming position and index for a text that is no contraction, ShapeError for sizes that differ
 */
export async function contract(
  specification: string,
  a: DeviceArray,
  b: DeviceArray,
  options: ContractionOptions = {},
): Promise<DeviceArray> {
  using plan = await planContraction(specification, a, b, options);
  plan.run();
  return plan.d;
}

/** Plans {@link contract}: checks, chooses, compiles and binds. */
export async function planContraction(
  specification: string,
  a: DeviceArray,
  b: DeviceArray,
  options: ContractionOptions = {},
): Promise<ContractionPlan> {
  const spec = readSpecification(specification);
  const device = checkInputs(spec, a, b);
  const extents = extentsOf(spec, a, b);
  const shape = spec.d.map((name) => extents.get(name) as number);
  for (const name of ["c", "d"] as const) checkResult(spec, name, options[name], shape, device);
  const { c, d: given, ...rest } = options;
  const type =
    given?.type ?? options.type ?? outputTypeOf(a.type, b.type, operatorTypes(a.type, b.type, rest));
  const d = given ?? device.empty(type, shape);
  try {
    return await planFolded(spec, { a, b, c, d }, extents, rest);
  } catch (error) {
    if (given === undefined) d.dispose();
    throw error;
  }
}

function planFolded(
  spec: Specification,
  arrays: Arrays,
  extents: ReadonlyMap<string, number>,
  options: GemmOptions,
): Promise<ContractionPlan> {
  const folding = chooseFolding(spec, arrays, extents, options);
  checkExtents(spec, folding);
  const products = outerModes(folding.batch).map(
    (starts) => (): Promise<GemmPlan> => planProduct(folding, arrays, starts, options),
  );
  return joinPlans(arrays.d, `contract ${JSON.stringify(spec.text)}`, products);
}

/** Where one matrix of the batch starts in each array. */
type Starts = Readonly<Partial<Record<ModeArray, number>>>;

/** An array as the matrix that its modes make of it, transposed where rows and columns are exchanged. */
function matrixOf(
  { rows, columns, summed, exchanged }: Folding,
  arrays: Arrays,
  starts: Starts,
  name: ModeArray,
): DeviceArray | MatrixSource {
  const first = name === "b" ? summed : rows;
  const second = name === "a" ? summed : columns;
  const [down, across] = exchanged ? [second, first] : [first, second];
  // What one array steps through as through one mode may be two in another.
  const own = (list: readonly Mode[]): readonly FoldedMode[] => {
    const alone = modesIn(list, name).map(({ extent, stride }) => ({ extent, strides: { [name]: stride } }));
    return modesIn(fuseInOrder(alone), name);
  };
  const modes = [own(down), own(across)] as const;
  const all = modes.flat();
  const array = arrays[name] as DeviceArray;
  const part = array.strided(
    all.map(({ extent }) => extent),
    all.map(({ stride }) => stride),
    array.offset + (starts[name] ?? 0),
  );
  return folded(part, ...modes);
}

/** One matrix of the batch: its modes in each array, from where it starts. */
function planProduct(
  folding: Folding,
  arrays: Arrays,
  starts: Starts,
  options: GemmOptions,
): Promise<GemmPlan> {
  const matrix = (name: ModeArray): DeviceArray | MatrixSource => matrixOf(folding, arrays, starts, name);
  const left = matrix(folding.exchanged ? "b" : "a");
  const right = matrix(folding.exchanged ? "a" : "b");
  const d = matrix("d");
  const addend = arrays.c === undefined ? {} : { c: arrays.c === arrays.d ? d : matrix("c") };
  const { type: _, ...rest } = options;
  return planGemm(left, right, { ...rest, ...addend, d });
}

/**
 * Modes sorted so that each array's neighbours come first, where that does not change what functions of coordinates see. In
 * D's own order instead where D is an ordinary matrix in it, and what is none then can be copied to one and may be.
 */
function chooseFolding(
  spec: Specification,
  arrays: Arrays,
  extents: ReadonlyMap<string, number>,
  options: GemmOptions,
): Folding {
  const inOrder = foldingOf(spec, arrays, extents, true);
  if (seesCoordinates(options)) return inOrder;
  const sorted = foldingOf(spec, arrays, extents, false);
  const [m, n, k] = [inOrder.rows, inOrder.columns, inOrder.summed].map(extentOf) as [number, number, number];
  const { d } = arrays;
  if (!mayPack({ m, n, k }, d.device, options) || inOrder.batch.length > 0) return sorted;
  // Copies are made for tensor maps and warpgroups; elsewhere neighbours that come first are worth more.
  const types = operatorTypes(arrays.a.type, arrays.b.type, options);
  if (options.operator !== undefined || instructionOf({ types }, d.device.facts) === undefined) return sorted;
  const matrices = (folding: Folding) =>
    (["a", "b", "c", "d"] as const)
      .filter((name) => arrays[name] !== undefined)
      .map((name) => ({ name, matrix: matrixOf(folding, arrays, {}, name) }));
  const isPlain = (matrix: DeviceArray | MatrixSource): boolean => matrix instanceof DeviceArray;
  if (matrices(sorted).every(({ matrix }) => isPlain(matrix))) return sorted;
  const serves = matrices(inOrder).every(({ name, matrix }) => {
    if (matrix instanceof DeviceArray) return true;
    return name === "a" || name === "b"
      ? matrix.lines?.(name === "a" ? "row" : "column") !== undefined
      : false;
  });
  return serves ? inOrder : sorted;
}

function foldingOf(
  spec: Specification,
  arrays: Arrays,
  extents: ReadonlyMap<string, number>,
  ordered: boolean,
): Folding {
  const indices = { a: spec.a, b: spec.b, c: spec.d, d: spec.d };
  const mode = (name: string): Mode => {
    const strides = Object.entries(indices).flatMap(([array, own]) => {
      const at = own.indexOf(name);
      const held = arrays[array as ModeArray];
      return at < 0 || held === undefined ? [] : [[array, held.strides[at]] as const];
    });
    return { extent: extents.get(name) as number, strides: Object.fromEntries(strides) };
  };
  // Last index first: it is the fastest of a row-major array.
  const of = (role: IndexRole, order: readonly string[]): readonly Mode[] =>
    order
      .filter((name) => spec.roles.get(name) === role)
      .map(mode)
      .reverse();
  const group = (role: IndexRole, order: readonly string[], ...by: ModeArray[]): readonly Mode[] =>
    ordered ? fuseInOrder(of(role, order)) : fuseAndSort(of(role, order), by);
  const rows = group("row", spec.d, "a", "d");
  const columns = group("column", spec.d, "b", "d");
  const neighbours = ([fastest]: readonly Mode[]): boolean => fastest?.strides.d === 1;
  return {
    rows,
    columns,
    summed: group("summed", spec.a, "a", "b"),
    batch: fuseAndSort(of("batch", spec.d), ["d"]),
    exchanged: !ordered && neighbours(rows) && !neighbours(columns),
  };
}

// Checks ------------------------------------------------------------------------------------------------------------------

function checkInputs(spec: Specification, a: DeviceArray, b: DeviceArray): Device {
  for (const [name, array, indices] of [
    ["A", a, spec.a],
    ["B", b, spec.b],
  ] as const) {
    if (!(array instanceof DeviceArray)) {
      throw new ArgumentError(`contract: ${name} is a device array, not ${String(array)}`);
    }
    array.check(`contract: ${name}`);
    checkRank(spec, name, array, indices);
  }
  if (a.device !== b.device) {
    throw new ArgumentError(
      `contract: A is on ${a.device.name} and B on ${b.device.name}; both must be on one device`,
    );
  }
  return a.device;
}

function checkRank(spec: Specification, name: string, array: DeviceArray, indices: readonly string[]): void {
  if (array.rank === indices.length) return;
  throw new ShapeError(
    `contract: ${JSON.stringify(spec.text)} gives ${name} ${indices.length} indices (${indices.join("")}); ${array.label} has rank ${array.rank}`,
  );
}

/** The extent of every index of A and B. */
function extentsOf(spec: Specification, a: DeviceArray, b: DeviceArray): ReadonlyMap<string, number> {
  const extents = new Map(spec.a.map((name, i) => [name, a.shape[i]] as const));
  spec.b.forEach((name, i) => {
    const [known, own] = [extents.get(name), b.shape[i]];
    if (known !== undefined && known !== own) {
      throw new ShapeError(
        `contract: ${JSON.stringify(spec.text)}: index ${name} is ${known} in A (dimension ${spec.a.indexOf(name)} of ${a.label}) and ${own} in B (dimension ${i} of ${b.label})`,
      );
    }
    extents.set(name, own);
  });
  return extents;
}

function checkResult(
  spec: Specification,
  which: "c" | "d",
  array: DeviceArray | undefined,
  shape: readonly number[],
  device: Device,
): void {
  if (array === undefined) return;
  const name = which.toUpperCase();
  if (!(array instanceof DeviceArray)) {
    throw new ArgumentError(`contract: ${name} is a device array, not ${String(array)}`);
  }
  array.check(`contract: ${name}`);
  if (array.device !== device) {
    throw new ArgumentError(
      `contract: ${name} is on ${array.device.name}, A and B on ${device.name}; all must be on one device`,
    );
  }
  checkRank(spec, name, array, spec.d);
  const at = array.shape.findIndex((extent, i) => extent !== shape[i]);
  if (at >= 0) {
    throw new ShapeError(
      `contract: ${JSON.stringify(spec.text)} makes D [${shape.join(", ")}]; ${name} (${array.label}) has ${array.shape[at]} where index ${spec.d[at]} is ${shape[at]}`,
    );
  }
  if (which === "d" && repeatsElements(array)) {
    throw new ShapeError(
      `contract: D (${array.label}, strides ${array.strides.join(", ")}) has elements that share memory; each is written by itself`,
    );
  }
}

function checkExtents({ text }: Specification, { rows, columns, summed }: Folding): void {
  for (const [name, modes] of Object.entries({ rows, columns, summed })) {
    if (extentOf(modes) < 2 ** 31) continue;
    throw new UnsupportedError(
      `contract: ${JSON.stringify(text)} has ${extentOf(modes)} ${name === "summed" ? "terms in each sum" : name}, 2^31 or more; contract slices of the arrays one by one`,
    );
  }
}
