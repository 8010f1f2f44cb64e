/**
 * @file Products drawn at random from the components' whole space: types, operators and their shapes, tile sizes of each
 * copy and of the compute step, schedules, layouts, transforms on the eight streams, steps, predicates. A seed is a product.
 */
import {
  ArgumentError,
  bf16,
  type Device,
  type DeviceArray,
  f16,
  f32,
  f64,
  i8,
  i32,
  type StorageType,
  type TargetFacts,
  UnsupportedError,
} from "tilewright";
import {
  auxiliary,
  bias,
  dot4Operator,
  type EpilogueStep,
  fmaOperator,
  type GemmOptions,
  type GemmParams,
  type GivenTransforms,
  type MatrixSource,
  maxPlus,
  minPlus,
  mmaSync,
  type OperatorFactory,
  type Predicate,
  planGemm,
  reduceColumns,
  reduceRows,
  relu,
  residual,
  type Semiring,
  scale,
  semiringOperator,
  type Transform,
  wmmaSync,
} from "tilewright/gemm";
import { operatorTypes } from "../../src/gemm/problem.ts";
import { generator } from "../support/random.ts";
import { Maker } from "./structured-cases.ts";
import { structures } from "./structures.ts";

/** Draws from one stream of numbers. */
class Dice {
  readonly #next: () => number;
  constructor(seed: number) {
    this.#next = generator(seed);
  }
  number(): number {
    return this.#next();
  }
  chance(probability: number): boolean {
    return this.#next() < probability;
  }
  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.#next() * (most - least + 1));
  }
  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#next() * list.length)]!;
  }
}

/** A change of an element that rounds nothing, and the same on the host; 0 stays 0. */
interface Change {
  readonly name: string;
  readonly kernel: Transform;
  readonly host: (x: number, row: number, column: number) => number;
}

const changes: readonly Change[] = [
  { name: "negated", kernel: (x) => x.neg(), host: (x) => -x },
  {
    name: "negated on a chessboard",
    kernel: (x, { row, column }) => x.mul(row.add(column).rem(2).mul(-2).add(1).to(x.type)),
    host: (x, row, column) => x * (1 - 2 * ((row + column) % 2)),
  },
  {
    name: "only even columns",
    kernel: (x, { column }) => x.mul(column.add(1).rem(2).to(x.type)),
    host: (x, _, column) => x * ((column + 1) % 2),
  },
];

/** Every second K step. */
const everySecond: Predicate = { name: "every second step", next: (_, step) => step.add(step.rem(2)) };

const streams = {
  a: ["globalToShared", "sharedToRegister"],
  b: ["globalToShared", "sharedToRegister"],
  c: ["globalToShared", "sharedToRegister"],
  d: ["registerToShared", "sharedToGlobal"],
} as const;
type Stream = keyof typeof streams;

/** A matrix and what it stands for. */
interface Operand {
  readonly name: string;
  readonly source: DeviceArray | MatrixSource;
  readonly shape: readonly [rows: number, columns: number];
  readonly dense: ArrayLike<number>;
}

/** A value and how far a correct result may be from it. */
interface Judged {
  readonly value: number;
  readonly error: number;
}

const unit: Readonly<Record<string, number>> = { f16: 2 ** -11, bf16: 2 ** -8, f32: 2 ** -24, f64: 2 ** -53 };

const typeRows: readonly (readonly [a: StorageType, b: StorageType, d: StorageType])[] = [
  [f32, f32, f32],
  [f16, f16, f32],
  [f16, f16, f16],
  [bf16, bf16, f32],
  [f64, f64, f64],
  [i8, i8, i32],
  [i32, i32, i32],
  [f16, f32, f32],
];

type Way = "tiles" | "matrix-vector" | "warpgroup" | "library";

/** What happened to a product. */
export interface Outcome {
  readonly description: string;
  /** Why the library refused it; undefined if it ran. */
  readonly refused: string | undefined;
}

/** Makes a product of a seed, runs it and compares all of it. @throws Error that names seed, product and the wrong element */
export async function checkRandomProduct(device: Device, seed: number): Promise<Outcome> {
  const product = new RandomProduct(device, seed);
  try {
    return await product.run();
  } catch (error) {
    const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
    throw new Error(
      `seed ${seed}: ${product.description}\n${what}\nrepeat with TILEWRIGHT_SEED=${seed} npx vitest run --project conformance test/conformance/gemm-properties.test.ts`,
    );
  } finally {
    product.dispose();
  }
}

class RandomProduct {
  readonly #dice: Dice;
  readonly #makers: Maker[] = [];
  readonly #words: string[] = [];

  constructor(
    private readonly device: Device,
    private readonly seed: number,
  ) {
    this.#dice = new Dice(seed);
  }

  get description(): string {
    return this.#words.join(", ");
  }

  dispose(): void {
    for (const maker of this.#makers) for (const array of maker.arrays) array.dispose();
  }

  async run(): Promise<Outcome> {
    const dice = this.#dice;
    const { facts } = this.device;
    const way: Way = dice.pick(["tiles", "tiles", "tiles", "matrix-vector", "warpgroup", "library"]);
    const usable = typeRows.filter((row) => row.every(({ name }) => facts.storage.has(name)));
    const [ta, tb, td] =
      way === "warpgroup" ? ([f16, f16, dice.pick([f16, f32])] as const) : dice.pick(usable);
    const semiring = way !== "warpgroup" && dice.chance(0.15) ? dice.pick([maxPlus, minPlus]) : undefined;
    const few = way === "matrix-vector" ? dice.whole(1, 4) : undefined;
    const onLeft = dice.chance(0.5);
    const size = (): number => dice.pick([1, 2, 3, 7, 16, 17, 33, 40, 65]);
    const [m0, n0, k0] = [
      few !== undefined && onLeft ? few : size(),
      few !== undefined && !onLeft ? few : size(),
      size(),
    ];
    this.#words.push(way, `${ta.name}·${tb.name} to ${td.name}`);
    const aligned = way === "warpgroup";
    const a = this.#operand("A", ta, m0, k0, semiring === undefined && !aligned, aligned);
    const k = a.shape[1];
    const b = this.#operand("B", tb, k, n0, semiring === undefined && !aligned, aligned);
    if (b.shape[0] !== k) return { description: this.description, refused: "square B of another size" };
    const [m, n] = [a.shape[0], b.shape[1]];
    this.#words.push(`${m} x ${n} x ${k}`);
    const { operator, params } = this.#tiles(way, [ta, tb], semiring, facts, { m, n });
    const changed = this.#changes(operator, { a: ta, b: tb, c: td, d: td });
    const integer = td.class !== "float";
    const factor = (): number => (integer ? dice.pick([1, 2, -3]) : dice.pick([1, 0.5, -2]));
    const alpha = semiring === undefined ? factor() : 1;
    const c =
      semiring === undefined && dice.chance(0.4) ? this.#operand("C", td, m, n, false, aligned) : undefined;
    const beta = c === undefined ? 0 : factor();
    const columnMajor = way !== "warpgroup" && dice.chance(0.4);
    const target = this.#target(td, m, n, columnMajor, aligned);
    const steps = this.#steps(td, m, n, (params?.splitK ?? 1) > 1);
    const predicate = params !== undefined && dice.chance(0.2) ? everySecond : undefined;
    if (predicate !== undefined) this.#words.push(predicate.name);
    const schedule = {
      tiles: dice.pick(["register-staged", "multistage"] as const),
      "matrix-vector": "matrix-vector",
      warpgroup: "warpgroup",
      library: undefined,
    }[way] as GemmOptions["schedule"];
    const options: GemmOptions = {
      alpha,
      ...(c === undefined ? {} : { c: c.source, beta }),
      d: target.view,
      ...(operator === undefined ? {} : { operator }),
      ...(params === undefined ? {} : { params }),
      ...(schedule === undefined ? {} : { schedule }),
      ...(predicate === undefined ? {} : { predicate }),
      transforms: changed.transforms,
      epilogue: steps.map(({ step }) => step),
    };
    this.#words.push(
      `alpha ${alpha}, beta ${beta}`,
      schedule ?? "any schedule",
      JSON.stringify(params ?? "its params"),
    );
    const plan = await this.#plan(a, b, options);
    if (typeof plan === "string") return { description: this.description, refused: plan };
    const depth = plan.kind.params.block.k;
    plan.run();
    const result = await numbersOf(target.whole);
    plan.dispose();
    const counts = (inner: number): boolean => predicate === undefined || Math.floor(inner / depth) % 2 === 0;
    const { accumulator } = operatorTypes(ta, tb, {});
    const epsilon = integer ? 0 : unit[accumulator.name]! * (8 * Math.sqrt(k) + 16);
    const host = (stream: Stream, x: number, row: number, column: number): number =>
      changed.host[stream].reduce((value, change) => change(value, row, column), x);
    const judged: Judged[] = [];
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let [value, magnitude] = [semiring === undefined ? 0 : semiring.zero(accumulator), 0];
        for (let inner = 0; inner < k; inner++) {
          if (!counts(inner)) continue;
          const x = host("a", a.dense[i * k + inner]!, i, inner);
          const y = host("b", b.dense[inner * n + j]!, inner, j);
          if (semiring === undefined) {
            value += x * y;
            magnitude += Math.abs(x * y);
          } else {
            value = semiring === maxPlus ? Math.max(value, x + y) : Math.min(value, x + y);
            magnitude = Math.max(magnitude, Math.abs(x) + Math.abs(y));
          }
        }
        const addend = c === undefined ? 0 : beta * host("c", c.dense[i * n + j]!, i, j);
        judged.push({
          value: alpha * value + addend,
          error: epsilon * (Math.abs(alpha) * magnitude + Math.abs(addend)),
        });
      }
    }
    let held: readonly Judged[] = judged;
    for (const { apply } of steps) held = await apply(held);
    held.forEach(({ value, error }, at) => {
      const [i, j] = [Math.floor(at / n), at % n];
      const expected = host("d", value, i, j);
      const allowed = error + (integer ? 0 : 2 * unit[td.name]! * Math.abs(expected) + 1e-7);
      const got = result[target.position(i, j)]!;
      if (!(Math.abs(got - expected) <= allowed) && got !== expected)
        throw new Error(`D[${i}, ${j}] is ${got}, not ${expected} (allowed ${allowed})`);
    });
    const own = new Set(held.map((_, at) => target.position(Math.floor(at / n), at % n)));
    result.forEach((value, position) => {
      if (own.has(position)) return;
      if (!(integer ? value === poisonInteger : Number.isNaN(value)))
        throw new Error(`element ${position}, outside D, was overwritten with ${value}`);
    });
    return { description: this.description, refused: undefined };
  }

  #maker(type: StorageType): Maker {
    const maker = new Maker(this.device, type, this.seed * 31 + this.#makers.length);
    this.#makers.push(maker);
    return maker;
  }

  /** A dense matrix in either order, its lines padded, or a structured one. */
  #operand(
    name: string,
    type: StorageType,
    rows: number,
    columns: number,
    mayBeStructured: boolean,
    aligned: boolean,
  ): Operand {
    const dice = this.#dice;
    const maker = this.#maker(type);
    if (mayBeStructured && dice.chance(0.3)) {
      // Kinds that are square take their extent from the dimension that is fixed already.
      const structure = dice.pick(structures);
      const { source, dense } = structure.make(maker, name === "B" ? rows : Math.max(rows, 1), columns);
      this.#words.push(`${name} ${structure.name}`);
      return { name: structure.name, source, shape: source.shape, dense };
    }
    const major = name === "C" && aligned ? "row" : dice.pick(["row", "column"] as const);
    const length = major === "row" ? columns : rows;
    const padding = aligned ? Math.ceil(length / 8) * 8 - length : dice.pick([0, 1, 2, 3, 8]);
    const { array, values } = maker.matrix(rows, columns, major, () => true, padding);
    this.#words.push(`${name} ${major}-major + ${padding}`);
    return { name: major, source: array, shape: [rows, columns], dense: values };
  }

  #tiles(
    way: Way,
    [ta, tb]: readonly [StorageType, StorageType],
    semiring: Semiring | undefined,
    facts: TargetFacts,
    { m, n }: { readonly m: number; readonly n: number },
  ): { readonly operator: OperatorFactory | undefined; readonly params: GemmParams | undefined } {
    const dice = this.#dice;
    const { width } = facts.subgroup;
    if (way === "warpgroup") {
      const block = { m: dice.pick([64, 128]), n: dice.pick([64, 128]), k: 64 };
      return {
        operator: undefined,
        params: { block, warps: { m: block.m / 16, n: 1 }, groupRows: dice.whole(1, 3) },
      };
    }
    if (way !== "tiles" || width !== 32) {
      const operator = semiring === undefined ? undefined : semiringOperator(semiring);
      if (way !== "matrix-vector" || !dice.chance(0.7)) return { operator, params: undefined };
      return { operator, params: this.#vectorParams(m, n, width) };
    }
    const types = operatorTypes(ta, tb, {});
    for (;;) {
      const operator = this.#operator(semiring, ta === i8);
      let shape: { readonly m: number; readonly n: number; readonly k: number };
      try {
        shape = operator.create(types, facts).shape;
      } catch {
        continue;
      }
      const warps = { m: dice.whole(1, 2), n: dice.whole(1, 2) };
      const block = {
        m: warps.m * shape.m * dice.whole(1, 3),
        n: warps.n * shape.n * dice.whole(1, 3),
        k: Math.max(shape.k, shape.k === 1 ? dice.pick([1, 2, 4, 6, 8, 16]) : shape.k * dice.whole(1, 2)),
      };
      if (block.m > 96 || block.n > 96 || block.m * block.n > 4096) continue;
      const width = (): number => dice.pick([1, 2, 4, 8, 16]);
      const copies = { a: width(), b: width(), c: width(), d: width() };
      const parts = semiring === undefined && dice.chance(0.2) ? { splitK: dice.whole(2, 4) } : {};
      this.#words.push(operator.name);
      return { operator, params: { block, warps, groupRows: dice.whole(1, 4), copies, ...parts } };
    }
  }

  #operator(semiring: Semiring | undefined, bytes: boolean): OperatorFactory {
    const dice = this.#dice;
    const laneRows = dice.pick([1, 2, 4, 8, 16, 32]);
    const shape = { laneRows, laneColumns: 32 / laneRows, rows: dice.whole(1, 4), columns: dice.whole(1, 4) };
    if (semiring !== undefined) return semiringOperator(semiring, shape);
    const others = bytes ? [mmaSync, dot4Operator({ ...shape, depth: 4 })] : [mmaSync, wmmaSync];
    return dice.chance(0.5) ? fmaOperator(shape) : dice.pick(others);
  }

  /** Grids of lanes and warps for a few vectors; whatever does not fit is refused. */
  #vectorParams(m: number, n: number, width: number): GemmParams {
    const dice = this.#dice;
    const [lines, along] = [dice.pick([1, 2]), dice.pick([1, 2, 4])];
    const extent = lines * dice.pick([8, 16, 32, 64]);
    const k = width * dice.pick([1, 2, 4]);
    const parts = dice.chance(0.3) ? { splitK: dice.whole(2, 3) } : {};
    return n <= m
      ? { block: { m: extent, n, k }, warps: { m: lines, n: 1, k: along }, groupRows: 1, ...parts }
      : { block: { m, n: extent, k }, warps: { m: 1, n: lines, k: along }, groupRows: 1, ...parts };
  }

  /** Changes on the streams. Operands of opaque fragments have none in registers, bytes no arithmetic. */
  #changes(
    operator: OperatorFactory | undefined,
    types: Readonly<Record<Stream, StorageType>>,
  ): {
    readonly transforms: GivenTransforms;
    readonly host: Readonly<Record<Stream, Change["host"][]>>;
  } {
    const dice = this.#dice;
    const host: Record<Stream, Change["host"][]> = { a: [], b: [], c: [], d: [] };
    const transforms: Record<string, Record<string, Transform>> = {};
    for (const stream of ["a", "b", "c", "d"] as const) {
      for (const stage of streams[stream]) {
        if (
          !dice.chance(0.15) ||
          types[stream].bits === 8 ||
          (stage === "sharedToRegister" && operator === wmmaSync)
        )
          continue;
        const change = dice.pick(changes);
        transforms[stream] = { ...transforms[stream], [stage]: change.kernel };
        host[stream].push(change.host);
        this.#words.push(`${stream} ${stage} ${change.name}`);
      }
    }
    return { transforms: transforms as GivenTransforms, host };
  }

  /** D between poison. */
  #target(
    type: StorageType,
    m: number,
    n: number,
    columnMajor: boolean,
    aligned: boolean,
  ): {
    readonly whole: DeviceArray;
    readonly view: DeviceArray;
    readonly position: (row: number, column: number) => number;
  } {
    const [lines, length] = columnMajor ? [n, m] : [m, n];
    const leading = aligned ? Math.ceil(length / 8) * 8 : length + this.#dice.pick([0, 1, 3, 8]);
    const start = aligned ? 8 : this.#dice.pick([0, 1, 8]);
    const elements = start + lines * leading + 5;
    const poison = type.class === "float" ? Number.NaN : poisonInteger;
    const { array: whole } = this.#maker(type).array([elements], () => poison);
    const strides = columnMajor ? [1, leading] : [leading, 1];
    const position = (row: number, column: number): number =>
      start + (columnMajor ? column * leading + row : row * leading + column);
    this.#words.push(`D ${columnMajor ? "column" : "row"}-major + ${leading - length}`);
    return { whole, view: whole.strided([m, n], strides, start), position };
  }

  #steps(
    type: StorageType,
    m: number,
    n: number,
    divided: boolean,
  ): readonly {
    readonly step: EpilogueStep | Transform;
    readonly apply: (held: readonly Judged[]) => Promise<readonly Judged[]>;
  }[] {
    const dice = this.#dice;
    const integer = type.class !== "float";
    const state = integer ? i32 : type === f64 ? f64 : f32;
    const rounding = integer ? 0 : 4 * unit[state.name]!;
    const vector = (length: number): { readonly array: DeviceArray; readonly values: ArrayLike<number> } => {
      const { array, values } = this.#maker(state).matrix(1, length, "row", () => true, 0);
      return { array: array.row(0), values };
    };
    const adding = (other: (at: number) => number) => async (held: readonly Judged[]) =>
      held.map(({ value, error }, at) => {
        const sum = value + other(at);
        return { value: sum, error: error + rounding * (Math.abs(value) + Math.abs(other(at))) };
      });
    const compared = async (array: DeviceArray, expected: readonly Judged[]): Promise<void> => {
      const got = await numbersOf(array);
      expected.forEach(({ value, error }, at) => {
        if (!(Math.abs(got[at]! - value) <= error + rounding * Math.abs(value) + (integer ? 0 : 1e-6)))
          throw new Error(`element ${at} beside D is ${got[at]}, not ${value} (allowed ${error})`);
      });
    };
    const kinds = ["bias", "row bias", "residual", "relu", "auxiliary", ...(integer ? [] : ["scale"])];
    const names = Array.from({ length: dice.pick([0, 0, 1, 2, 3]) }, () =>
      dice.pick(divided ? kinds : [...kinds, "row sums", "column maxima"]),
    );
    return names.map((name) => {
      this.#words.push(name);
      switch (name) {
        case "bias": {
          const { array, values } = vector(n);
          return { step: bias(array), apply: adding((at) => values[at % n]!) };
        }
        case "row bias": {
          const { array, values } = vector(m);
          return { step: bias(array, { per: "row" }), apply: adding((at) => values[Math.floor(at / n)]!) };
        }
        case "residual": {
          const { array, values } = this.#maker(state).matrix(m, n, "row", () => true, dice.pick([0, 1, 4]));
          return { step: residual(array), apply: adding((at) => values[at]!) };
        }
        case "scale": {
          const { array, values } = vector(n);
          return {
            step: scale(array),
            apply: async (held) =>
              held.map(({ value, error }, at) => {
                const factor = values[at % n]!;
                return {
                  value: value * factor,
                  error: error * Math.abs(factor) + rounding * Math.abs(value * factor),
                };
              }),
          };
        }
        case "auxiliary": {
          const { array: target } = this.#maker(state).array([m, n], () => 0);
          return {
            step: auxiliary(target),
            apply: async (held) => {
              await compared(target, held);
              return held;
            },
          };
        }
        case "row sums": {
          const { array: target } = this.#maker(state).array([m], () => 0);
          return {
            step: reduceRows(target, "sum"),
            apply: async (held) => {
              const rows = Array.from({ length: m }, (_, i) => held.slice(i * n, (i + 1) * n));
              const sum = (row: readonly Judged[], of: (one: Judged) => number): number =>
                row.reduce((total, one) => total + of(one), 0);
              await compared(
                target,
                rows.map((row) => ({
                  value: sum(row, ({ value }) => value),
                  error: sum(row, ({ value, error }) => error + 16 * rounding * Math.abs(value)),
                })),
              );
              return held;
            },
          };
        }
        case "column maxima": {
          const { array: target } = this.#maker(state).array([n], () => 0);
          return {
            step: reduceColumns(target, "max"),
            apply: async (held) => {
              const columns = Array.from({ length: n }, (_, j) => held.filter((_one, at) => at % n === j));
              await compared(
                target,
                columns.map((column) => ({
                  value: Math.max(...column.map(({ value }) => value)),
                  error: Math.max(...column.map(({ error }) => error)),
                })),
              );
              return held;
            },
          };
        }
        default:
          return {
            step: relu,
            apply: async (held) => held.map(({ value, error }) => ({ value: Math.max(0, value), error })),
          };
      }
    });
  }

  /** The plan, or why there is none; the staged schedule that serves everything takes what another one refuses. */
  async #plan(
    a: Operand,
    b: Operand,
    options: GemmOptions,
  ): Promise<Awaited<ReturnType<typeof planGemm>> | string> {
    try {
      return await planGemm(a.source, b.source, options);
    } catch (error) {
      if (!(error instanceof UnsupportedError || error instanceof ArgumentError)) throw error;
      if (options.schedule !== "multistage") return error.message;
      return this.#plan(a, b, { ...options, schedule: "register-staged" });
    }
  }
}

const poisonInteger = 1_000_003;

async function numbersOf(array: DeviceArray): Promise<readonly number[]> {
  return Array.from(await array.read(), Number);
}
