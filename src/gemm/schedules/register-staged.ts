/**
 * @file The register-staged schedule: two stages in shared memory, the next K step on its way through registers while
 * the present one is multiplied, one barrier a step. Works on every target; it asks for no asynchronous copies.
 *
 * ```
 * fetch(0); store(0); barrier
 * for each step that counts:
 *   fetch(next)                 global → registers, in flight during the arithmetic
 *   multiply(step)              shared → fragments → accumulators
 *   store(next)                 registers → the other stage
 *   barrier
 * epilogue
 * ```
 */
import {
  type AnyValue,
  block,
  byteSize,
  type Condition,
  type ElementType,
  f32,
  f64,
  type GlobalArray,
  type I32,
  type Index,
  i32,
  index,
  inout,
  input,
  type Kernel,
  kernel,
  loopWhile,
  output,
  type ParameterDescriptors,
  type StorageType,
  sharedArena,
  subgroup,
  type Value,
  variable,
  when,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { plus, subdivide, tile, translate } from "../../tile/index.ts";
import type { Epilogue } from "../epilogues/epilogue.ts";
import { columnMajor, type Layout, padded, rowMajor } from "../layouts/layout.ts";
import type {
  FragmentTransform,
  Operator,
  OperatorFactory,
  OperatorTypes,
  SharedTile,
} from "../operators/operator.ts";
import { checkParams, type GemmParams } from "../params.ts";
import type { OutputTile, Predicate } from "../predicate.ts";
import type { Transform, Transforms } from "../transforms.ts";
import { maskOutside, StagedCopy } from "./staged-copy.ts";

/** One operand of a kind. */
export interface OperandKind {
  readonly type: StorageType;
  readonly layout: Layout;
  /** Bytes to which every line of the matrix is aligned: 16, 8, 4, or the element's size. */
  readonly alignment: number;
}

/** Everything that is compiled in. */
export interface GemmKind {
  readonly a: OperandKind;
  readonly b: OperandKind;
  /** Undefined where beta is zero. */
  readonly c: OperandKind | undefined;
  readonly d: OperandKind;
  readonly types: OperatorTypes;
  readonly operator: OperatorFactory;
  readonly params: GemmParams;
  readonly transforms: Transforms;
  readonly epilogue: Epilogue;
  readonly predicate: Predicate;
}

/** Type of alpha, beta and their combination. */
export function scaleTypeOf(accumulator: ElementType): typeof f32 | typeof f64 | typeof i32 | ElementType {
  if (accumulator.class !== "float") return accumulator;
  return accumulator === f64 ? f64 : f32;
}

/** Parameters of the kernel, in order. */
export function gemmParameters(kind: GemmKind): ParameterDescriptors {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof f32;
  return {
    a: input(kind.a.type, 0),
    b: input(kind.b.type, 0),
    // C may be D: what is read there may have been written by this kernel, so it is no plain input.
    ...(kind.c === undefined ? {} : { c: inout(kind.c.type, 0) }),
    d: output(kind.d.type, 0),
    m: i32,
    n: i32,
    k: i32,
    leadingA: index,
    leadingB: index,
    ...(kind.c === undefined ? {} : { leadingC: index }),
    leadingD: index,
    alpha: scale,
    ...(kind.c === undefined ? {} : { beta: scale }),
  };
}

/** What the body receives. */
interface GemmArguments {
  readonly a: GlobalArray<StorageType>;
  readonly b: GlobalArray<StorageType>;
  readonly c: GlobalArray<StorageType>;
  readonly d: GlobalArray<StorageType>;
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly k: Value<I32>;
  readonly leadingA: Value<Index>;
  readonly leadingB: Value<Index>;
  readonly leadingC: Value<Index>;
  readonly leadingD: Value<Index>;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
}

/** Elements of one access for an operand: what its alignment allows, at most 16 bytes, dividing `extent`. */
export function accessWidth(operand: OperandKind, extent: number, most: number | undefined): number {
  const size = byteSize(operand.type);
  let width = Math.max(1, Math.min(operand.alignment, 16) / size);
  if (most !== undefined) width = Math.min(width, most);
  while (width > 1 && extent % width !== 0) width /= 2;
  return width;
}

/** How the shared tiles of A and B lie, and the bytes that everything takes. */
interface SharedPlan {
  readonly a: { readonly layout: Layout; readonly leading: number; readonly length: number };
  readonly b: { readonly layout: Layout; readonly leading: number; readonly length: number };
  readonly stageBytes: { readonly a: number; readonly b: number };
}

function planShared(kind: GemmKind, operator: Operator): SharedPlan {
  const { m, n, k } = kind.params.block;
  const plan = (operand: "a" | "b", rows: number, columns: number): SharedPlan["a"] => {
    const major = operator.sharedMajor(operand, kind[operand].layout.major);
    const layout = padded(major === "row" ? rowMajor : columnMajor, operator.sharedPadding(operand, major));
    return { layout, leading: layout.leading(rows, columns), length: layout.length(rows, columns) };
  };
  const a = plan("a", m, k);
  const b = plan("b", k, n);
  const bytes = (length: number, type: StorageType): number => Math.ceil((length * byteSize(type)) / 16) * 16;
  return {
    a,
    b,
    stageBytes: { a: bytes(a.length, operator.shared.a), b: bytes(b.length, operator.shared.b) },
  };
}

/** Bytes of shared memory that a kind takes with two stages. */
export function sharedBytesOf(kind: GemmKind, facts: TargetFacts): number {
  const operator = kind.operator.create(kind.types, facts);
  const { stageBytes } = planShared(kind, operator);
  return Math.max(2 * (stageBytes.a + stageBytes.b), stagingOf(kind, operator, facts).bytes);
}

/** The epilogue's shared memory: per warp one row of operator tiles, or as many of them as fit the stages. */
function stagingOf(
  kind: GemmKind,
  operator: Operator,
  facts: TargetFacts,
): {
  readonly layout: Layout;
  readonly leading: number;
  readonly length: number;
  readonly tiles: number;
  readonly bytes: number;
} {
  const { block: extents, warps } = kind.params;
  const { stageBytes } = planShared(kind, operator);
  const type = operator.types.accumulator as StorageType;
  const across = extents.n / warps.n / operator.shape.n;
  const available = Math.min(Math.max(2 * (stageBytes.a + stageBytes.b), 16384), facts.limits.sharedBytes);
  const layout = padded(
    kind.d.layout.major === "row" ? rowMajor : columnMajor,
    Math.max(1, 16 / byteSize(type)),
  );
  for (let tiles = across; ; tiles--) {
    const rows = operator.shape.m;
    const columns = tiles * operator.shape.n;
    const length = layout.length(rows, columns);
    const bytes = Math.ceil((length * byteSize(type)) / 16) * 16 * warps.m * warps.n;
    if (tiles === 1 || (bytes <= available && across % tiles === 0)) {
      return { layout, leading: layout.leading(rows, columns), length, tiles, bytes };
    }
  }
}

/** The kernel of a kind. */
export function registerStagedKernel(kind: GemmKind): Kernel {
  const { params } = kind;
  return kernel("gemm", {
    params: gemmParameters(kind),
    block: (facts) => params.warps.m * params.warps.n * facts.subgroup.width,
    body: (args, facts) => gemmBody(kind, args as unknown as GemmArguments, facts),
  });
}

function gemmBody(kind: GemmKind, args: GemmArguments, facts: TargetFacts): void {
  const operator = kind.operator.create(kind.types, facts);
  checkParams(kind.params, operator, facts.subgroup.width);
  const { block: extents, warps } = kind.params;
  const { m, n, k } = args;
  const output = outputTile(kind.params, m, n);
  const whole = output.row.add(extents.m).le(m).and(output.column.add(extents.n).le(n));

  const plan = planShared(kind, operator);
  const staging = stagingOf(kind, operator, facts);
  const arena = sharedArena(Math.max(2 * (plan.stageBytes.a + plan.stageBytes.b), staging.bytes), 128);
  const sharedA = arena.view(operator.shared.a, (2 * plan.stageBytes.a) / byteSize(operator.shared.a));
  const sharedB = arena.view(
    operator.shared.b,
    (2 * plan.stageBytes.b) / byteSize(operator.shared.b),
    2 * plan.stageBytes.a,
  );
  const stageA = (stage: Value<I32> | number): SharedTile =>
    stageTile(sharedA, plan.a, stage, plan.stageBytes.a / byteSize(operator.shared.a));
  const stageB = (stage: Value<I32> | number): SharedTile =>
    stageTile(sharedB, plan.b, stage, plan.stageBytes.b / byteSize(operator.shared.b));

  const threads = block.size;
  const copyA = new StagedCopy({
    source: args.a,
    layout: kind.a.layout,
    leading: args.leadingA,
    rows: m,
    columns: k,
    tile: { rows: extents.m, columns: extents.k },
    threads,
    width: accessWidth(kind.a, kind.a.layout.major === "row" ? extents.k : extents.m, kind.params.copies?.a),
    transform: kind.transforms.a?.globalToShared,
  });
  const copyB = new StagedCopy({
    source: args.b,
    layout: kind.b.layout,
    leading: args.leadingB,
    rows: k,
    columns: n,
    tile: { rows: extents.k, columns: extents.n },
    threads,
    width: accessWidth(kind.b, kind.b.layout.major === "row" ? extents.n : extents.k, kind.params.copies?.b),
    transform: kind.transforms.b?.globalToShared,
  });
  const fetch = (step: Value<I32>): void => {
    const depth = step.mul(extents.k);
    const inside = whole.and(depth.add(extents.k).le(k));
    copyA.fetch(output.row, depth, inside);
    copyB.fetch(depth, output.column, inside);
  };
  const store = (step: Value<I32>, stage: Value<I32> | number): void => {
    const depth = step.mul(extents.k);
    copyA.store(stageA(stage), output.row, depth);
    copyB.store(stageB(stage), depth, output.column);
  };

  const warp = subdivide(
    tile({ R: extents.m, C: extents.n }),
    { R: extents.m / warps.m, C: extents.n / warps.n },
    subgroup.index,
    warps.m * warps.n,
  );
  const product = new WarpProduct(kind, operator, warp.base as never, args, output);

  const steps = k.ceilDiv(extents.k);
  const tileOfBlock: OutputTile = { ...output, rows: extents.m, columns: extents.n, depth: extents.k };
  const step = variable(i32, kind.predicate.next(tileOfBlock, k.mul(0)));
  const stage = variable(i32, 0);
  when(step.value.lt(steps), () => {
    const first = step.value;
    fetch(first);
    store(first, 0);
  });
  block.barrier();
  loopWhile(
    () => step.value.lt(steps),
    () => {
      const present = step.value;
      const next = kind.predicate.next(tileOfBlock, present.add(1));
      const more: Condition = next.lt(steps);
      const here = stage.value;
      const there = here.xor(1);
      when(more, () => fetch(next));
      product.run(stageA(here), stageB(here), present);
      when(more, () => store(next, there));
      stage.value = there;
      step.value = next;
      block.barrier();
    },
  );

  const type = operator.types.accumulator as StorageType;
  const stagingMemory = arena.view(type, staging.bytes / byteSize(type));
  const perWarp = staging.bytes / byteSize(type) / (warps.m * warps.n);
  const d = { memory: args.d, layout: kind.d.layout, leading: args.leadingD };
  const lines = kind.d.layout.major === "row" ? operator.shape.n : operator.shape.m;
  const widths = [accessWidth(kind.d, lines, kind.params.copies?.d)];
  if (kind.c !== undefined)
    widths.push(
      kind.c.layout.major === kind.d.layout.major ? accessWidth(kind.c, lines, kind.params.copies?.c) : 1,
    );
  kind.epilogue.run({
    operator,
    accumulators: product.accumulators,
    row: output.row.add(warp.base.R as Value<I32>),
    column: output.column.add(warp.base.C as Value<I32>),
    rows: m,
    columns: n,
    whole,
    staging: {
      memory: stagingMemory,
      layout: staging.layout,
      leading: staging.leading,
      origin: subgroup.index.mul(perWarp),
    },
    tilesPerTurn: staging.tiles,
    lane: subgroup.lane,
    lanes: subgroup.size,
    barrier: () => subgroup.barrier(),
    scaleType: scaleTypeOf(operator.types.accumulator),
    alpha: args.alpha,
    source:
      kind.c === undefined
        ? undefined
        : { matrix: { memory: args.c, layout: kind.c.layout, leading: args.leadingC }, beta: args.beta },
    target: d,
    width: Math.min(...widths),
    transforms: kind.transforms,
  });
}

function stageTile(
  memory: SharedTile["memory"],
  plan: SharedPlan["a"],
  stage: Value<I32> | number,
  length: number,
): SharedTile {
  const origin = typeof stage === "number" ? stage * length : stage.mul(length);
  return { memory, layout: plan.layout, leading: plan.leading, origin };
}

/** First element of the block's output tile. Blocks walk down groups of tile rows before the next tile column. */
function outputTile(
  params: GemmParams,
  m: Value<I32>,
  n: Value<I32>,
): { readonly row: Value<I32>; readonly column: Value<I32> } {
  const { block: extents, groupRows } = params;
  const tilesDown = m.ceilDiv(extents.m);
  const tilesAcross = n.ceilDiv(extents.n);
  const id = block.id.x;
  const perGroup = tilesAcross.mul(groupRows);
  const group = id.div(perGroup);
  const firstRow = group.mul(groupRows);
  const rows = tilesDown.sub(firstRow).min(groupRows);
  const within = id.sub(group.mul(perGroup));
  return {
    row: firstRow.add(within.rem(rows)).mul(extents.m),
    column: within.div(rows).mul(extents.n),
  };
}

/** What one warp multiplies. */
class WarpProduct {
  readonly accumulators: readonly (readonly unknown[])[];
  readonly #a: readonly unknown[];
  readonly #b: readonly unknown[];

  constructor(
    private readonly kind: GemmKind,
    private readonly operator: Operator,
    private readonly base: { readonly R: Value<I32>; readonly C: Value<I32> },
    private readonly args: GemmArguments,
    private readonly output: { readonly row: Value<I32>; readonly column: Value<I32> },
  ) {
    const { block: extents, warps } = kind.params;
    const down = extents.m / warps.m / operator.shape.m;
    const across = extents.n / warps.n / operator.shape.n;
    this.#a = Array.from({ length: down }, () => operator.createA());
    this.#b = Array.from({ length: across }, () => operator.createB());
    this.accumulators = this.#a.map(() => this.#b.map(() => operator.createAccumulator()));
  }

  /** Multiplies one K step out of shared memory. */
  run(a: SharedTile, b: SharedTile, step: Value<I32>): void {
    const { operator, base } = this;
    const { m, n, k } = operator.shape;
    const depth = step.mul(this.kind.params.block.k);
    const transformA = this.#transform(
      this.kind.transforms.a?.sharedToRegister,
      this.output.row,
      depth,
      this.args.m,
      this.args.k,
    );
    const transformB = this.#transform(
      this.kind.transforms.b?.sharedToRegister,
      depth,
      this.output.column,
      this.args.k,
      this.args.n,
    );
    for (let inner = 0; inner < this.kind.params.block.k; inner += k) {
      this.#a.forEach((fragment, i) => {
        const at = translate(tile({ R: m, C: k }), { R: base.R });
        operator.loadA(fragment, a, translate(at, { R: i * m, C: inner }), transformA);
      });
      this.#b.forEach((fragment, j) => {
        const at = translate(tile({ R: k, C: n }), { C: base.C });
        operator.loadB(fragment, b, translate(at, { R: inner, C: j * n }), transformB);
      });
      this.#a.forEach((left, i) => {
        this.#b.forEach((right, j) => operator.multiply(this.accumulators[i][j], left, right));
      });
    }
  }

  /** A shared→register transform in whole-matrix coordinates; what lies outside the matrix stays zero. */
  #transform(
    transform: Transform | undefined,
    row: Value<I32>,
    column: Value<I32>,
    rows: Value<I32>,
    columns: Value<I32>,
  ): FragmentTransform | undefined {
    if (transform === undefined) return undefined;
    return (value, down, across) => {
      const at = { row: plus(row, down) as Value<I32>, column: plus(column, across) as Value<I32> };
      return maskOutside(transform(value, at), at.row, at.column, rows, columns);
    };
  }
}
