/** @file The product of the page: its choices, its operands, how it runs, and what it must be. */
import {
  AbortedError,
  bf16,
  type Device,
  type DeviceArray,
  f16,
  f32,
  i8,
  i32,
  type StorageType,
  u8,
} from "tilewright";
import {
  bias,
  type GemmPlan,
  geluTanh,
  planGemm,
  relu,
  sigmoid,
  silu,
  type Transform,
  tuneGemm,
} from "tilewright/gemm";
import { max } from "tilewright/lang";

export interface TypeChoice {
  readonly name: string;
  readonly operand: StorageType;
  readonly result: StorageType;
}

export const typeChoices: readonly TypeChoice[] = [
  { name: "f32", operand: f32, result: f32 },
  { name: "f16, summed in f32", operand: f16, result: f32 },
  { name: "f16", operand: f16, result: f16 },
  { name: "bf16, summed in f32", operand: bf16, result: f32 },
  { name: "i8, summed in i32", operand: i8, result: i32 },
  { name: "u8, summed in i32", operand: u8, result: i32 },
];

/** A function for the kernel, and the same for the reference. */
export interface FunctionChoice {
  readonly name: string;
  readonly inKernel?: Transform;
  readonly reference: (x: number) => number;
  /** Not for integers. */
  readonly floats?: boolean;
}

const same = (x: number): number => x;
/** Types without arithmetic of their own are widened first. */
const wide = (x: Parameters<Transform>[0]) => x.to(x.type.class === "float" ? f32 : i32);

export const transformChoices: readonly FunctionChoice[] = [
  { name: "nothing", reference: same },
  { name: "ReLU", inKernel: (x) => max(wide(x), 0), reference: (x) => Math.max(x, 0) },
  { name: "halves", floats: true, inKernel: (x) => wide(x).mul(0.5), reference: (x) => x / 2 },
];

const logistic = (x: number): number => 1 / (1 + Math.exp(-x));

export const activationChoices: readonly FunctionChoice[] = [
  { name: "none", reference: same },
  { name: "ReLU", inKernel: relu, reference: (x) => Math.max(x, 0) },
  {
    name: "GELU",
    floats: true,
    inKernel: geluTanh,
    reference: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  },
  { name: "SiLU", floats: true, inKernel: silu, reference: (x) => x * logistic(x) },
  { name: "sigmoid", floats: true, inKernel: sigmoid, reference: logistic },
];

export interface Choices {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly types: TypeChoice;
  readonly transposed: boolean;
  readonly transform: FunctionChoice;
  readonly activation: FunctionChoice;
  readonly bias: boolean;
}

export interface Outcome {
  readonly seconds: number;
  readonly route: string;
  readonly text: string;
  /** The largest difference from the reference. */
  readonly deviation: number;
  /** Whether every difference is one that rounding explains. */
  readonly right: boolean;
  /** Rows of D that were compared. */
  readonly rows: number;
}

export interface Watching {
  readonly signal: AbortSignal;
  readonly onProgress: (phase: string, share: number) => void;
}

/** Numbers like those of a network's layer, the same every time. */
function numbers(count: number, type: StorageType, seed: number): Float32Array {
  let state = seed;
  const uniform = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  return Float32Array.from({ length: count }, () => {
    if (type.class === "float")
      return Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(6.283185 * uniform());
    return Math.floor(uniform() * 100) - (type.class === "signed" ? 50 : 0);
  });
}

/** The page stays alive between pieces of work. */
async function breathe(signal: AbortSignal): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  if (signal.aborted) throw new AbortedError("stopped");
}

/** Multiplies, times and compares. */
export async function multiply(device: Device, choices: Choices, watching: Watching): Promise<Outcome> {
  const { m, n, k, types } = choices;
  const { signal, onProgress } = watching;
  onProgress("Making operands", 0.02);
  await breathe(signal);
  const a = device.array(types.operand, [m, k], numbers(m * k, types.operand, 1));
  const b = device.array(
    types.operand,
    choices.transposed ? [n, k] : [k, n],
    numbers(k * n, types.operand, 2),
  );
  const v = device.array(types.result, [n], numbers(n, types.result, 3));
  const d = device.array(types.result, [m, n]);
  const held: Disposable[] = [a, b, v, d];
  try {
    onProgress("Compiling", 0.1);
    await breathe(signal);
    const right = choices.transposed ? b.transposed : b;
    const plan = await planGemm(a, right, { ...components(choices, v), d, signal });
    held.push(plan);
    onProgress("Multiplying", 0.4);
    await breathe(signal);
    const seconds = await timed(device, plan);
    onProgress("Comparing", 0.6);
    const judged = await compare({ choices, a, b, v, d }, watching);
    return { seconds, route: plan.explain(), text: plan.compiled?.text ?? "", ...judged };
  } finally {
    for (const one of held) one[Symbol.dispose]();
  }
}

function components({ transform, activation, bias: biased }: Choices, v: DeviceArray) {
  const { inKernel } = transform;
  return {
    ...(inKernel === undefined ? {} : { transforms: { a: { globalToShared: inKernel } } }),
    epilogue: [
      ...(biased ? [bias(v)] : []),
      ...(activation.inKernel === undefined ? [] : [activation.inKernel]),
    ],
  };
}

/** Seconds of one product. Quick ones are repeated, since a launch has a price of its own. */
async function timed(device: Device, plan: GemmPlan): Promise<number> {
  plan.run();
  await device.sync();
  const once = await device.time(() => plan.run());
  const repeats = Math.min(50, Math.floor(0.1 / Math.max(once, 1e-6)));
  if (repeats < 2) return once;
  const all = await device.time(() => {
    for (let turn = 0; turn < repeats; turn++) plan.run();
  });
  return all / repeats;
}

interface Run {
  readonly choices: Choices;
  readonly a: DeviceArray;
  readonly b: DeviceArray;
  readonly v: DeviceArray;
  readonly d: DeviceArray;
}

/** Products in double precision that are made for the comparison; of larger matrices some rows are compared. */
const mostProducts = 2 ** 26;

/** Half a unit in the last place, relative. */
const unit = (type: StorageType): number => (type.class === "float" ? 2 ** -(type.precision + 1) : 0);

async function compare(
  { choices, a, b, v, d }: Run,
  { signal, onProgress }: Watching,
): Promise<Pick<Outcome, "deviation" | "right" | "rows">> {
  const { m, n, k, types, transposed, transform, activation } = choices;
  const [left, factors, offsets, result] = (await Promise.all(
    [a, b, v, d].map((array) => array.read()),
  )) as unknown as Float32Array[];
  const rows = Math.min(m, Math.max(1, Math.floor(mostProducts / (n * k))));
  let deviation = 0;
  let right = true;
  for (let turn = 0; turn < rows; turn++) {
    if (turn % Math.ceil(rows / 20) === 0) {
      onProgress(`Comparing ${rows === m ? "all" : `${rows} of ${m}`} rows`, 0.6 + (0.4 * turn) / rows);
      await breathe(signal);
    }
    const row = rows === m ? turn : Math.floor((turn * m) / rows);
    for (let column = 0; column < n; column++) {
      let [sum, magnitude] = [choices.bias ? offsets![column]! : 0, 0];
      for (let inner = 0; inner < k; inner++) {
        const x = transform.reference(left![row * k + inner]!);
        const product = x * factors![transposed ? column * k + inner : inner * n + column]!;
        sum += product;
        magnitude += Math.abs(product);
      }
      const expected = activation.reference(sum);
      const error = Math.abs(result![row * n + column]! - expected);
      const rounding =
        types.operand.class === "float" ? (4 * Math.sqrt(k) + 8) * 2 ** -23 * (magnitude + 1) : 0;
      const most = rounding + 2 * unit(types.result) * Math.abs(expected);
      deviation = Math.max(deviation, error);
      right &&= error <= most;
    }
  }
  return { deviation, right, rows };
}

/** Tries tile shapes for the chosen product; later plans take the best. */
export async function tune(
  device: Device,
  choices: Choices,
  { signal, onProgress }: Watching,
): Promise<string> {
  const { m, n, k, types, transposed } = choices;
  const { seconds, usualSeconds, measured, params } = await tuneGemm(
    device,
    { m, n, k, a: types.operand, d: types.result, layout: transposed ? "nt" : "nn" },
    {
      most: 12,
      signal,
      onProgress: ({ done, total }) => onProgress(`Tuning: ${done} of ${total} tile shapes`, done / total),
    },
  );
  const { block } = params;
  const gain =
    usualSeconds === undefined ? "" : `, ${(usualSeconds / seconds).toFixed(2)} times as fast as before`;
  return `Of ${measured.length} tile shapes ${block.m} x ${block.n} x ${block.k} is the fastest${gain}.`;
}
