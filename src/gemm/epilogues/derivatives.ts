/**
 * @file Derivatives of the activations, for backward passes.
 */
import { ArgumentError } from "../../errors.ts";
import {
  type AnyValue,
  clamp,
  constant,
  exp,
  fusedMultiplyAdd,
  tanh as hyperbolicTangent,
  sigmoid as logistic,
  select,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import {
  erf,
  gelu,
  geluTanh,
  hardSwish,
  leakyRelu,
  parameterOf,
  relu,
  sigmoid,
  silu,
  tanh,
} from "./activations.ts";
import type { EpilogueStep, StepBehaviour } from "./step.ts";

type Activation = (x: AnyValue) => AnyValue;

const one = (x: AnyValue): AnyValue => constant(x.type, 1);
const zero = (x: AnyValue): AnyValue => constant(x.type, 0);

const derivatives: ReadonlyMap<Activation, Activation> = new Map<Activation, Activation>([
  [relu, (x) => select(x.gt(0), one(x), zero(x))],
  [
    gelu,
    (x) => {
      // Φ(x) + x · φ(x)
      const half = fusedMultiplyAdd(erf(x.mul(Math.SQRT1_2)), constant(x.type, 0.5), constant(x.type, 0.5));
      const density = exp(x.mul(x).mul(-0.5)).mul(1 / Math.sqrt(2 * Math.PI));
      return fusedMultiplyAdd(x, density, half);
    },
  ],
  [
    geluTanh,
    (x) => {
      // x · s(2z) with 2z = x (c + d x²): s + x s (1 - s) (c + 3 d x²). Beyond 10 the middle factor is 0 in f32.
      const c = 2 * Math.sqrt(2 / Math.PI);
      const d = c * 0.044715;
      const near = clamp(x, -10, 10);
      const square = near.mul(near);
      const s = logistic(x.mul(fusedMultiplyAdd(square, constant(x.type, d), constant(x.type, c))));
      const slope = fusedMultiplyAdd(square, constant(x.type, 3 * d), constant(x.type, c));
      return fusedMultiplyAdd(near.mul(slope), s.mul(one(x).sub(s)), s);
    },
  ],
  [
    silu,
    (x) => {
      const s = logistic(x);
      return s.mul(fusedMultiplyAdd(x, one(x).sub(s), one(x)));
    },
  ],
  [
    sigmoid,
    (x) => {
      const s = logistic(x);
      return s.mul(one(x).sub(s));
    },
  ],
  [
    tanh,
    (x) => {
      const t = hyperbolicTangent(x);
      return one(x).sub(t.mul(t));
    },
  ],
  [
    hardSwish,
    (x) => {
      const middle = fusedMultiplyAdd(x, constant(x.type, 1 / 3), constant(x.type, 0.5));
      return select(x.lt(-3), zero(x), select(x.gt(3), one(x), middle));
    },
  ],
]);

const parameterised: WeakMap<Activation, Activation> = new WeakMap();

/**
 * The derivative of an activation of this library, as a function of the same x. Where there is none (ReLU and its kin at
 * their corners) it is that from the left for `relu`, from the right for `leakyRelu`, 1 for `clampTo`.
 *
 * @throws ArgumentError for a function that is not one of the library's activations
 */
export function derivative(activation: Activation): Activation {
  const known = derivatives.get(activation) ?? parameterised.get(activation);
  if (known !== undefined) return known;
  const parameter = parameterOf(activation);
  if (parameter === undefined) {
    throw new ArgumentError(
      "gemm: derivative() knows the activations of tilewright/gemm; for a function of your own, write its derivative and give that to backward()",
    );
  }
  const made: Activation =
    parameter.of === leakyRelu
      ? (x) => select(x.lt(0), constant(x.type, parameter.values[0]), one(x))
      : (x) => {
          const [low, high] = parameter.values;
          return select(x.lt(low).or(x.gt(high)), zero(x), one(x));
        };
  parameterised.set(activation, made);
  return made;
}

const behaviours: WeakMap<Activation, StepBehaviour> = new WeakMap();

/**
 * Multiplies by a derivative at stored values: `backward(derivative(gelu), preActivation)` turns the gradient with respect
 * to GELU's result into that with respect to its argument.
 *
 * @param slope a function of one element, of f32 (f64 where the values are)
 * @param stored a row-major matrix of D's shape, such as {@link auxiliary} wrote
 */
export function backward(slope: Activation, stored: DeviceArray): EpilogueStep {
  const behaviour = behaviours.get(slope) ?? {
    name: "backward",
    operands: [{ shape: "matrix", access: "read" } as const],
    apply(values, run, [operand]) {
      const at = operand.load(run);
      return values.map((x, e) => x.mul(slope(at[e].to(x.type))));
    },
  };
  behaviours.set(slope, behaviour);
  return { behaviour, arrays: [stored] };
}
