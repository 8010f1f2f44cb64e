/** @file Values of options: text from the command line to what it stands for. */
import { InvalidArgumentError } from "commander";
import {
  type Algebra,
  complex,
  complex3m,
  dual,
  fma,
  type GemmOptions,
  gelu,
  geluTanh,
  hardSwish,
  leakyRelu,
  maxPlus,
  minPlus,
  mmaSync,
  type OperatorFactory,
  orAnd,
  relu,
  type Semiring,
  sigmoid,
  silu,
  type Transform,
  tanh,
  wmmaSync,
} from "../gemm/index.ts";
import { type ElementType, isArithmetic, isStorage, type StorageType, types } from "../types/index.ts";

const all: readonly ElementType[] = Object.values(types);
const storageTypes: readonly StorageType[] = all.filter(isStorage);
const sumTypes: readonly ElementType[] = storageTypes.filter(isArithmetic);

/** What can multiply. */
const operators: readonly OperatorFactory[] = [fma, mmaSync, wmmaSync];

function named<T extends { readonly name: string }>(choices: readonly T[], text: string): T {
  const found = choices.find(({ name }) => name === text);
  if (found !== undefined) return found;
  throw new InvalidArgumentError(`Known are ${choices.map(({ name }) => name).join(", ")}.`);
}

/** A type that arrays and files can have. */
export const storageType = (text: string): StorageType => named(storageTypes, text);

/** A type that sums can be made in. */
export const sumType = (text: string): ElementType => named(sumTypes, text);

/** A type that operands are rounded to and multiplied in. */
export const computeType = (text: string): ElementType =>
  named(
    all.filter(({ class: kind }) => kind === "float"),
    text,
  );

/** Orders of A and B as BLAS writes them. */
export type Orders = "nn" | "nt" | "tn" | "tt";
const orders: readonly { readonly name: Orders }[] = [
  { name: "nn" },
  { name: "nt" },
  { name: "tn" },
  { name: "tt" },
];

/** Orders by their name. */
export const ordersNamed = (text: string): Orders => named(orders, text).name;

/** An operator by its name. */
export const operatorNamed = (text: string): OperatorFactory => named(operators, text);

/** How data moves. */
export type ScheduleName = NonNullable<GemmOptions["schedule"]>;
const schedules: readonly { readonly name: ScheduleName }[] = [
  { name: "warpgroup" },
  { name: "multistage" },
  { name: "register-staged" },
];

/** A schedule by its name. */
export const scheduleNamed = (text: string): ScheduleName => named(schedules, text).name;

/** A function of each element of the result, by the name that networks know it by. */
export interface Activation {
  readonly name: string;
  readonly step: Transform;
}
const activations: readonly Activation[] = [
  { name: "relu", step: relu },
  { name: "leaky-relu", step: leakyRelu(0.01) },
  { name: "gelu", step: gelu },
  { name: "gelu-tanh", step: geluTanh },
  { name: "silu", step: silu },
  { name: "sigmoid", step: sigmoid },
  { name: "tanh", step: tanh },
  { name: "hard-swish", step: hardSwish },
];

/** An activation by its name. */
export const activationNamed = (text: string): Activation => named(activations, text);

/** What numbers are multiplied and added as: elements of an algebra, or by the two functions of a semiring. */
export type Arithmetic =
  | { readonly name: string; readonly algebra: Algebra }
  | { readonly name: string; readonly semiring: Semiring };
const arithmetics: readonly Arithmetic[] = [
  { name: "complex", algebra: complex },
  { name: "complex3m", algebra: complex3m },
  { name: "dual", algebra: dual },
  { name: "max-plus", semiring: maxPlus },
  { name: "min-plus", semiring: minPlus },
  { name: "or-and", semiring: orAnd },
];

/** An algebra or a semiring by its name. */
export const arithmeticNamed = (text: string): Arithmetic => named(arithmetics, text);

/** A finite number. Whole ones beyond 2^53 stay exact, for 64-bit integers. */
export function factor(text: string): number | bigint {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) {
    throw new InvalidArgumentError("It must be a number such as 2, -0.5 or 1e-3.");
  }
  return /^[+-]?\d+$/.test(text) && !Number.isSafeInteger(value) ? BigInt(text.replace(/^\+/, "")) : value;
}

/** A whole number from 1 on. */
export function extent(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1 && value < 2 ** 31) return value;
  throw new InvalidArgumentError("It must be a whole number from 1 to 2147483647.");
}
