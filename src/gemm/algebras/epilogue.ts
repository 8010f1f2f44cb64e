/**
 * @file How D leaves where its elements have several components: the components are staged in planes and come together
 * again on their way to D. alpha and beta may be elements of the algebra; transforms and functions see each component.
 */
import { UnsupportedError } from "../../errors.ts";
import { type AnyValue, fusedMultiplyAdd } from "../../lang/index.ts";
import { quotient } from "../../tile/coordinate.ts";
import { type Coordinate, tile, translate } from "../../tile/index.ts";
import { combine } from "../epilogues/combination.ts";
import {
  type Epilogue,
  type EpilogueContext,
  type GlobalMatrix,
  stageAndWrite,
  staged,
} from "../epilogues/epilogue.ts";
import type { EpilogueStep } from "../epilogues/step.ts";
import type { StepRun } from "../epilogues/step-operand.ts";
import type { ExtraValue } from "../extras.ts";
import { firstElement, type MatrixTile, streamsOf } from "../layouts/layout.ts";
import { planeOf } from "../operators/shared-tile.ts";
import { joined, separate, type Transform } from "../transforms.ts";
import type { Algebra } from "./algebra.ts";

const epilogues: WeakMap<Algebra, Epilogue> = new WeakMap();

/**
 * D = alpha · (A · B) + beta · C over an algebra, factors on the left. Factors that are elements are the extras of "alpha"
 * and "beta", a number for each component; the kernel's own alpha and beta are real numbers beside them.
 */
export function algebraEpilogue(algebra: Algebra): Epilogue {
  const known = epilogues.get(algebra);
  if (known !== undefined) return known;
  const made: Epilogue = {
    name: algebra.name,
    algebra,
    run(context) {
      const { width, target } = context;
      const most = Math.max(...streamsOf(target.layout).map(({ components }) => components.length));
      // So many elements that D is written in accesses of `width` numbers, or one element in several.
      const elements = width % most === 0 ? width / most : 1;
      stageAndWrite({ ...context, width: elements }, (_context, _collectors, part, global) =>
        write(algebra, context, part, global),
      );
    },
  };
  epilogues.set(algebra, made);
  return made;
}

/**
 * Over an algebra, functions see components; what brings arrays of numbers, joins columns or leaves on its own would mix
 * them up.
 * @throws UnsupportedError
 */
export function checkElementwise(
  { name: algebra }: Algebra,
  {
    custom,
    steps,
    gate,
  }: {
    readonly custom: Epilogue | undefined;
    readonly steps: readonly EpilogueStep[];
    readonly gate: Transform | undefined;
  },
): void {
  const step = steps.find(({ behaviour }) => behaviour.operands.some(({ shape }) => shape !== "number"));
  const name = custom?.name ?? step?.behaviour.name ?? (gate === undefined ? undefined : "gated");
  if (name === undefined) return;
  throw new UnsupportedError(
    `gemm: the ${name} epilogue works on single numbers, and elements here are ${algebra}; functions of a number work on each component, and C adds a matrix`,
  );
}

function write(algebra: Algebra, context: EpilogueContext, part: MatrixTile, global: MatrixTile): void {
  const products = Array.from({ length: algebra.dimension }, (_, p) =>
    staged(planeOf(context.staging, p), part),
  );
  writeElements(algebra, context, products, global);
}

/** What {@link writeElements} needs of an epilogue's context. */
export type ElementContext = Pick<
  EpilogueContext,
  "target" | "source" | "scaleType" | "alpha" | "transforms" | "extras" | "width" | "steps" | "stepOperands"
>;

/** Combines sums, by component those of the elements of `global`, with C, and writes them to D. */
export function writeElements(
  algebra: Algebra,
  context: ElementContext,
  sums: readonly (readonly AnyValue[])[],
  global: MatrixTile,
): void {
  const { target, source, scaleType, alpha, transforms, extras, width } = context;
  const run = runOver(global);
  const products = sums.map((component) => component.map((x) => x.to(scaleType) as AnyValue));
  const scaled = multiplied(algebra, extras.alpha, products);
  const { globalToShared, sharedToRegister } = transforms.c ?? {};
  const addends = (): readonly (readonly AnyValue[])[] => {
    if (source === undefined) return [];
    const loaded = loadElements(source.matrix, algebra, global, width).map((component) =>
      [globalToShared, sharedToRegister].reduce(
        (held, step) => (step === undefined ? held : held.map((x, e) => step(x, run.at(e)))),
        component,
      ),
    );
    const converted = loaded.map((component) => component.map((x) => x.to(scaleType) as AnyValue));
    return multiplied(algebra, extras.beta, converted);
  };
  const added = addends();
  const results = scaled.map((component, p) =>
    combine(
      {
        scaleType,
        alpha,
        beta: source?.beta ?? alpha,
        transforms: { ...(transforms.d === undefined ? {} : { d: transforms.d }) },
        steps: context.steps,
        stepOperands: context.stepOperands,
        collectors: undefined,
        target: target.memory.type,
        source: source === undefined ? undefined : () => added[p],
      },
      component,
      run,
    ),
  );
  storeElements(target, results, global, width);
}

function runOver(global: MatrixTile): StepRun {
  const along: "R" | "C" = global.size.C > 1 ? "C" : "R";
  return {
    count: global.size.R * global.size.C,
    along,
    aligned: true,
    offset: { row: global.offset.R, column: global.offset.C },
    at: (e) => firstElement(translate(global, { [along]: e } as never) as MatrixTile),
  };
}

/** factor · x for each of neighbouring elements, by component; x itself without a factor. */
function multiplied(
  algebra: Algebra,
  factor: readonly ExtraValue[] | undefined,
  x: readonly (readonly AnyValue[])[],
): readonly (readonly AnyValue[])[] {
  if (factor === undefined) return x;
  const { table, dimension } = algebra;
  const product = (k: number, e: number): AnyValue => {
    let sum: AnyValue | undefined;
    table.forEach((row, i) => {
      row.forEach((terms, j) => {
        if (terms[k] === 0) return;
        const left = terms[k] < 0 ? (factor[i] as AnyValue).neg() : (factor[i] as AnyValue);
        sum = sum === undefined ? left.mul(x[j][e]) : fusedMultiplyAdd(left, x[j][e], sum);
      });
    });
    return sum ?? x[k][e].mul(0);
  };
  return Array.from({ length: dimension }, (_, k) => x[k].map((_, e) => product(k, e)));
}

/** Numbers of one access: as many as divide the elements' numbers, `width` at most. */
function accessOf(numbers: number, width: number): number {
  let access = width;
  while (numbers % access !== 0) access /= 2;
  return access;
}

/** The accesses that move a stream's part of a tile of elements, and which number each begins with. */
function accesses(
  { layout }: Pick<GlobalMatrix, "layout">,
  components: number,
  global: MatrixTile,
  width: number,
): readonly { readonly first: number; readonly count: number; readonly at: MatrixTile }[] {
  const elements = global.size.R * global.size.C;
  const numbers = elements * components;
  const along = layout.major === "row" ? "C" : "R";
  // With its lines the other way a matrix is accessed an element at a time.
  const neighbours = elements === 1 || global.size[along] > 1;
  const count = neighbours ? accessOf(numbers, width) : 1;
  return Array.from({ length: numbers / count }, (_, i) => {
    const first = i * count;
    const scaled = (from: Readonly<Record<"R" | "C", Coordinate>>): Record<"R" | "C", Coordinate> => ({
      ...from,
      [along]: typeof from[along] === "number" ? from[along] * components : from[along].mul(components),
    });
    const start = translate(translate(tile({ R: 1, C: 1 }), scaled(global.base) as never), {
      ...(scaled(global.offset) as { R: number; C: number }),
    });
    const size = along === "C" ? { R: 1, C: count } : { R: count, C: 1 };
    return { first, count, at: translate(start, { [along]: first } as never).resize(size) as MatrixTile };
  });
}

/** The elements of a tile, by component. */
function loadElements(
  matrix: GlobalMatrix,
  algebra: Algebra,
  global: MatrixTile,
  width: number,
): readonly (readonly AnyValue[])[] {
  const { memory, leading, extras = [] } = matrix;
  const loaded: AnyValue[][] = Array.from({ length: algebra.dimension }, () => []);
  for (const { layout, components } of streamsOf(matrix.layout)) {
    for (const { first, at } of accesses({ layout }, components.length, global, width)) {
      separate(layout.load(memory, { origin: 0, leading, extras }, at)).forEach((value, s) => {
        const component = components[(first + s) % components.length];
        loaded[component][quotient(first + s, components.length) as number] = value;
      });
    }
  }
  return loaded;
}

function storeElements(
  matrix: GlobalMatrix,
  values: readonly (readonly AnyValue[])[],
  global: MatrixTile,
  width: number,
): void {
  const { memory, leading, extras = [] } = matrix;
  for (const { layout, components } of streamsOf(matrix.layout)) {
    for (const { first, count, at } of accesses({ layout }, components.length, global, width)) {
      const numbers = Array.from({ length: count }, (_, s) => {
        const element = Math.floor((first + s) / components.length);
        return values[components[(first + s) % components.length]][element];
      });
      layout.store(memory, { origin: 0, leading, extras }, at, joined(numbers));
    }
  }
}
