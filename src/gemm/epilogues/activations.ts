/**
 * @file Activations: ordinary functions of one element, to be steps of an epilogue or transforms of a stream.
 */
import {
  type AnyValue,
  clamp,
  constant,
  exp,
  exp2,
  fusedMultiplyAdd,
  tanh as hyperbolicTangent,
  sigmoid as logistic,
  reciprocal,
  select,
} from "../../lang/index.ts";

/** max(x, 0); NaN stays NaN. */
export function relu(x: AnyValue): AnyValue {
  return select(x.lt(0), 0, x);
}

/** x where it is not negative, slope · x elsewhere. The same slope gives the same function. */
export function leakyRelu(slope: number): (x: AnyValue) => AnyValue {
  return remembered(
    leaky,
    slope,
    { of: leakyRelu, values: [slope] },
    () => (x) => select(x.lt(0), x.mul(slope), x),
  );
}
const leaky: Map<number, (x: AnyValue) => AnyValue> = new Map();

/** x/2 · (1 + erf(x/√2)). */
export function gelu(x: AnyValue): AnyValue {
  const half = x.mul(0.5);
  return fusedMultiplyAdd(half, erf(x.mul(Math.SQRT1_2)), half);
}

/**
 * The tanh form of GELU: x/2 · (1 + tanh z) with z = √(2/π) (x + 0.044715 x³), computed as x · sigmoid(2z): the same
 * number without the cancellation of 1 + tanh z for negative x, and with one exponential and one reciprocal.
 */
export function geluTanh(x: AnyValue): AnyValue {
  // -2z · log2 e, so that sigmoid(2z) is 1/(1 + 2^that) without further factors.
  const c = -2 * Math.sqrt(2 / Math.PI) * Math.LOG2E;
  const slope = fusedMultiplyAdd(x.mul(x), constant(x.type, c * 0.044715), constant(x.type, c));
  return x.mul(reciprocal(exp2(x.mul(slope)).add(1)));
}

/** x · sigmoid(x), also called swish. */
export function silu(x: AnyValue): AnyValue {
  return x.mul(logistic(x));
}

/** 1/(1 + e^-x). */
export function sigmoid(x: AnyValue): AnyValue {
  return logistic(x);
}

/** Hyperbolic tangent. */
export function tanh(x: AnyValue): AnyValue {
  return hyperbolicTangent(x);
}

/** x · clamp(x + 3, 0, 6) / 6. */
export function hardSwish(x: AnyValue): AnyValue {
  return x.mul(clamp(x.add(3), 0, 6)).mul(1 / 6);
}

/** x held between two bounds. The same bounds give the same function. */
export function clampTo(low: number, high: number): (x: AnyValue) => AnyValue {
  return remembered(
    clamps,
    `${low} ${high}`,
    { of: clampTo, values: [low, high] },
    () => (x) => clamp(x, low, high),
  );
}
const clamps: Map<string, (x: AnyValue) => AnyValue> = new Map();

/** The error function, absolute error below 2e-7 (Abramowitz and Stegun, 7.1.26). */
export function erf(x: AnyValue): AnyValue {
  const magnitude = x.abs();
  const t = reciprocal(fusedMultiplyAdd(magnitude, constant(x.type, 0.3275911), constant(x.type, 1)));
  const coefficients = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  let polynomial: AnyValue = constant(x.type, coefficients[0]);
  for (const coefficient of coefficients.slice(1))
    polynomial = fusedMultiplyAdd(polynomial, t, constant(x.type, coefficient));
  const tail = polynomial.mul(t).mul(exp(magnitude.mul(magnitude).neg()));
  const positive = constant(x.type, 1).sub(tail);
  return select(x.lt(0), positive.neg(), positive);
}

/** What a parameterised activation was made by, and of. */
export interface ActivationParameters {
  readonly of: typeof leakyRelu | typeof clampTo;
  readonly values: readonly number[];
}

const parameters: WeakMap<(x: AnyValue) => AnyValue, ActivationParameters> = new WeakMap();

/** What an activation was made of; undefined for those without parameters and for users' functions. */
export function parameterOf(activation: (x: AnyValue) => AnyValue): ActivationParameters | undefined {
  return parameters.get(activation);
}

function remembered<K>(
  table: Map<K, (x: AnyValue) => AnyValue>,
  key: K,
  made: ActivationParameters,
  make: () => (x: AnyValue) => AnyValue,
): (x: AnyValue) => AnyValue {
  const known = table.get(key);
  if (known !== undefined) return known;
  const activation = make();
  table.set(key, activation);
  parameters.set(activation, made);
  return activation;
}
