/**
 * @file `tuneGemm`: tries params for a product on the device at hand, keeps the fastest whose result is right, and leaves
 * them where later plans find them.
 */
import { AbortedError, ArgumentError, UnsupportedError } from "../errors.ts";
import type { ElementType, StorageType } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import { type SearchProgress, search, type Trial, type TuningStore, usualStore } from "../tuning/index.ts";
import { decode, encode, rawArray } from "../types/host.ts";
import { integerRange } from "../types/integer-range.ts";
import type { OperatorFactory } from "./operators/operator.ts";
import { paramCandidates, textOf } from "./param-candidates.ts";
import type { GemmParams } from "./params.ts";
import { planGemm } from "./plan.ts";
import { type GemmOptions, type Resolved, resolve } from "./resolve.ts";
import { deviceKey, encodeParams, subjectKey } from "./tuned-params.ts";
import { Journal } from "./tuning-journal.ts";

/** A product to tune for: sizes, types and order. Lines are as long as the matrix, without padding. */
export interface TuningProblem {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: StorageType;
  /** A's type unless given. */
  readonly b?: StorageType;
  /** D's type; what `gemm` would choose unless given. */
  readonly d?: StorageType;
  /** Order of A and B as BLAS writes it: n is row-major, t a transposed view. Default "nn". */
  readonly layout?: "nn" | "nt" | "tn" | "tt";
  readonly accumulate?: ElementType;
  readonly compute?: ElementType;
  /** What multiplies; what `gemm` would choose unless given. */
  readonly operator?: OperatorFactory;
  /** How data moves; what `gemm` would choose unless given. */
  readonly schedule?: GemmOptions["schedule"];
}

/** How to tune. */
export interface TuningOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: SearchProgress) => void;
  /** Params to try. Default 32. */
  readonly most?: number;
  /** Also what an earlier, stopped call has tried. Default false. */
  readonly again?: boolean;
  /** Where the result is kept. Plans consult the user's store, which is the default. */
  readonly store?: TuningStore;
}

/** What tuning found. */
export interface GemmTuning {
  /** The schedule that was tuned. */
  readonly schedule: string;
  readonly params: GemmParams;
  /** Of one product, on the device's clock. */
  readonly seconds: number;
  /** Seconds with the params that heuristics choose; undefined if those gave no right result. */
  readonly usualSeconds: number | undefined;
  /** What was timed, fastest first. */
  readonly measured: readonly { readonly params: GemmParams; readonly seconds: number }[];
  /** What could not run or gave wrong results. */
  readonly refused: readonly { readonly params: GemmParams; readonly reason: string }[];
}

/**
 * Times params for D = A · B with the schedule that `gemm` would choose: tile shapes, warps, stages, tile orders and parts of
 * K, as the schedule offers them. Each result is compared with exact sums before its time counts; the fastest are timed again,
 * turn by turn, and medians decide. The best are kept per device (by its name) and found by later plans of single products of
 * like size, types, order and alignment; `explain()` says so.
 *
 * When the signal stops it, what was tried stays in the store, and another call goes on from there; the fastest of it is found
 * by plans meanwhile.
 *
 * @throws ArgumentError, AbortedError; UnsupportedError when no params give a right result, or the schedule has one way only
 */
export async function tuneGemm(
  device: Device,
  problem: TuningProblem,
  options: TuningOptions = {},
): Promise<GemmTuning> {
  const { most = 32, store = usualStore(), again = false, signal, onProgress } = options;
  if (!Number.isInteger(most) || most < 1) {
    throw new ArgumentError(`tuneGemm: most is a positive number of candidates, not ${String(most)}`);
  }
  checkSizes(problem);
  if (signal?.aborted === true) throw new AbortedError("tuning was stopped", { cause: signal.reason });
  const subject = new Subject(device, problem);
  try {
    const { kind, schedule, ...launch } = subject.resolved;
    if (schedule.candidates === undefined) {
      throw new UnsupportedError(
        `tuneGemm: params of the ${schedule.name} schedule follow from the sizes; there is nothing to tune`,
      );
    }
    const key = [deviceKey(launch.problem), subjectKey(schedule, kind, launch.problem)] as const;
    const candidates = paramCandidates(schedule, kind, launch, most);
    const journal = new Journal(store, key, again);
    const { best, measured, refused } = await search({
      candidates,
      prepare: (params) => subject.trial(params, signal),
      time: (enqueue) => device.time(enqueue),
      known: (params) => journal.known(textOf(params)),
      onOutcome: (params, outcome) => {
        journal.add(textOf(params), outcome);
        if (journal.isFastest(outcome)) store.put(...key, encodeParams(params));
      },
      signal,
      onProgress,
    });
    if (best === undefined) {
      journal.end();
      throw new UnsupportedError(
        `tuneGemm: none of ${candidates.length} candidates gave a right result on ${device.name}: ${refused[0]!.reason}`,
      );
    }
    store.put(...key, encodeParams(best.candidate));
    journal.end();
    return {
      schedule: schedule.name,
      params: best.candidate,
      seconds: best.seconds,
      usualSeconds: measured.find(({ candidate }) => candidate === candidates[0])?.seconds,
      measured: measured.map(({ candidate, seconds }) => ({ params: candidate, seconds })),
      refused: refused.map(({ candidate, reason }) => ({ params: candidate, reason })),
    };
  } finally {
    subject.dispose();
  }
}

function checkSizes({ m, n, k }: TuningProblem): void {
  for (const [name, size] of Object.entries({ m, n, k })) {
    if (!Number.isInteger(size) || size < 1 || size > 65536) {
      throw new ArgumentError(`tuneGemm: ${name} is a whole number from 1 to 65536, not ${String(size)}`);
    }
  }
}

type ScheduleName = NonNullable<GemmOptions["schedule"]>;

/** Rows of D that are compared with sums made here; all of D is compared among the candidates. */
const judgedRows = 12;

/** Operands with small whole numbers, whose sums every accumulator holds exactly, and what D must be. */
class Subject {
  readonly #a: DeviceArray;
  readonly #b: DeviceArray;
  readonly #d: DeviceArray;
  readonly #owned: readonly DeviceArray[];
  readonly #options: GemmOptions;
  /** As `gemm` would do it, by heuristics or by what earlier tuning found. */
  readonly resolved: Resolved;
  readonly #values: { readonly a: Int8Array; readonly b: Int8Array };
  /** D's bits by the first candidate that was right. */
  #bits: ArrayLike<number | bigint> | undefined;

  constructor(
    device: Device,
    private readonly problem: TuningProblem,
  ) {
    const { m, n, k, a, b = a, layout = "nn", d, accumulate, compute, operator, schedule } = problem;
    this.#values = { a: smallNumbers(m * k, a, 1), b: smallNumbers(k * n, b, 2) };
    const left = matrix(device, a, m, k, layout[0] === "t", this.#values.a);
    const right = matrix(device, b, k, n, layout[1] === "t", this.#values.b);
    this.#owned = [left, right];
    this.#a = layout[0] === "t" ? left.transposed : left;
    this.#b = layout[1] === "t" ? right.transposed : right;
    const given = { type: d, accumulate, compute, operator, schedule };
    const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    try {
      this.resolved = resolve(this.#a, this.#b, { ...said, pack: false });
    } catch (error) {
      for (const array of this.#owned) array.dispose();
      throw error;
    }
    this.#d = this.resolved.result;
    const { type: _, ...others } = said;
    this.#options = { ...others, schedule: this.resolved.schedule.name as ScheduleName, pack: false };
  }

  async trial(params: GemmParams, signal: AbortSignal | undefined): Promise<Trial> {
    const options = { ...this.#options, d: this.#d, params, ...(signal === undefined ? {} : { signal }) };
    const plan = await planGemm(this.#a, this.#b, options);
    return {
      enqueue: () => plan.run(),
      verify: async () => {
        this.#poison();
        plan.run();
        return this.#complaint((await this.#d.readBits()) as ArrayLike<number | bigint>);
      },
      dispose: () => plan.dispose(),
    };
  }

  #poison(): void {
    const bits = rawArray(this.#d.type, this.#d.size);
    new Uint8Array(bits.buffer).fill(0xff);
    this.#d.writeBits(bits);
  }

  #complaint(bits: ArrayLike<number | bigint>): string | undefined {
    if (this.#bits !== undefined) {
      for (let at = 0; at < bits.length; at++) {
        if (bits[at] !== this.#bits[at]) return this.#wrong(at);
      }
      return undefined;
    }
    const { m, n } = this.problem;
    const values = decode(this.#d.type, bits as never) as ArrayLike<number | bigint>;
    for (let turn = 0; turn < Math.min(m, judgedRows); turn++) {
      const row = Math.round((turn * (m - 1)) / Math.max(1, Math.min(m, judgedRows) - 1));
      const expected = this.#row(row);
      for (let column = 0; column < n; column++) {
        if (Number(values[row * n + column]) !== Number(expected[column])) {
          return this.#wrong(row * n + column);
        }
      }
    }
    this.#bits = bits;
    return undefined;
  }

  #wrong(at: number): string {
    const { n } = this.problem;
    return `its result is wrong at row ${Math.floor(at / n)}, column ${at % n}`;
  }

  /** A row of D, rounded and held to D's range as a product is. */
  #row(row: number): ArrayLike<number | bigint> {
    const { n, k } = this.problem;
    const sums = new Float64Array(n);
    for (let inner = 0; inner < k; inner++) {
      const factor = this.#values.a[row * k + inner]!;
      if (factor === 0) continue;
      for (let column = 0; column < n; column++)
        sums[column]! += factor * this.#values.b[inner * n + column]!;
    }
    const { type } = this.#d;
    if (type.class === "float") return decode(type, encode(type, sums)) as ArrayLike<number | bigint>;
    const { least, greatest } = integerRange(type)!;
    return sums.map((sum) => Math.min(Math.max(sum, Number(least)), Number(greatest)));
  }

  dispose(): void {
    for (const array of [...this.#owned, this.#d]) array.dispose();
  }
}

/** -1, 0 and 1, or 0 and 1 for types without a sign. */
function smallNumbers(count: number, type: StorageType, seed: number): Int8Array {
  const values = new Int8Array(count);
  const signed = type.class !== "unsigned";
  let state = (0x9e3779b9 * seed) >>> 0;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = signed ? ((state >>> 24) % 3) - 1 : state >>> 31;
  }
  return values;
}

/** A matrix as an array; a `transposed` one lies the other way, columns x rows. */
function matrix(
  device: Device,
  type: StorageType,
  rows: number,
  columns: number,
  transposed: boolean,
  values: Int8Array,
): DeviceArray {
  const wide = type.bits === 64 && type.class !== "float";
  const given = (source: ArrayLike<number>): never =>
    (wide ? Array.from(source, (value) => BigInt(value)) : source) as never;
  if (!transposed) return device.array(type, [rows, columns], given(Float32Array.from(values)));
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      turned[column * rows + row] = values[row * columns + column]!;
  }
  return device.array(type, [columns, rows], given(turned));
}
