/**
 * @file Random numbers from counters: no state, any element's number computed on its own, the same on every target.
 *
 * Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Normal
 * numbers by Box and Muller, with logarithm, sine and cosine written out in operations that all targets round alike
 * (polynomials of Moshier's Cephes library), so that their bits agree as well.
 */
import { type F32, f32, i32, type U32, u32 } from "../types/types.ts";
import { max, mulHigh, select, sqrt } from "./math.ts";
import { constant, type Operand, Value } from "./value.ts";

/** Four words: a counter, or the random bits that it stands for. */
export type RandomWords = readonly [Value<U32>, Value<U32>, Value<U32>, Value<U32>];

function word(operand: Operand<U32>): Value<U32> {
  return operand instanceof Value ? operand : constant(u32, operand);
}

/**
 * 128 random bits for a counter and a key, in ten rounds. Different counters or keys give unrelated bits: take element
 * numbers as counters and a seed as key.
 */
export function philox(
  counter: readonly [Operand<U32>, Operand<U32>, Operand<U32>, Operand<U32>],
  key: readonly [Operand<U32>, Operand<U32>],
): RandomWords {
  let [c0, c1, c2, c3] = counter.map(word) as [Value<U32>, Value<U32>, Value<U32>, Value<U32>];
  let [k0, k1] = key.map(word) as [Value<U32>, Value<U32>];
  for (let round = 0; round < 10; round++) {
    if (round > 0) {
      k0 = k0.add(0x9e3779b9);
      k1 = k1.add(0xbb67ae85);
    }
    const [high0, low0] = [mulHigh(c0, 0xd2511f53), c0.mul(0xd2511f53)];
    const [high1, low1] = [mulHigh(c2, 0xcd9e8d57), c2.mul(0xcd9e8d57)];
    [c0, c1, c2, c3] = [high1.xor(c1).xor(k0), low1, high0.xor(c3).xor(k1), low0];
  }
  return [c0, c1, c2, c3];
}

/** A number in [0, 1), a multiple of 2^-24, from 32 random bits. */
export function uniform(bits: Value<U32>): Value<F32> {
  return bits
    .shiftRight(8)
    .to(f32)
    .mul(2 ** -24);
}

/** Two independent numbers of the standard normal distribution from twice 32 random bits; at most 6.8 from 0. */
export function normalPair(a: Value<U32>, b: Value<U32>): readonly [Value<F32>, Value<F32>] {
  const radius = sqrt(max(logarithm(a.to(f32).fma(2 ** -32, 2 ** -33)).mul(-2), 0));
  const [x, y] = direction(b);
  return [radius.mul(x), radius.mul(y)];
}

/** coefficients[0]·x^n + … + coefficients[n]. */
function polynomial(x: Value<F32>, coefficients: readonly number[]): Value<F32> {
  const [first, ...rest] = coefficients.map(Math.fround);
  return rest.reduce((sum, coefficient) => sum.fma(x, coefficient), constant(f32, first) as Value<F32>);
}

/** Natural logarithm of a normal number in (0, 1], within 2 units in the last place. */
function logarithm(x: Value<F32>): Value<F32> {
  const bits = x.bitcast(u32);
  const fraction = bits.and(0x7fffff).or(0x3f000000).bitcast(f32);
  const isLow = fraction.lt(Math.fround(Math.SQRT1_2));
  const exponent = bits
    .shiftRight(23)
    .bitcast(i32)
    .sub(select(isLow, constant(i32, 127), 126))
    .to(f32);
  const t = select(isLow, fraction.add(fraction), fraction).sub(1);
  const square = t.mul(t);
  const tail = polynomial(
    t,
    [
      7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
      2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    ],
  )
    .mul(t)
    .mul(square);
  // ln 2 in two parts, the first of few bits, so that exponent times it is exact.
  const small = exponent.fma(Math.fround(-2.1219444e-4), tail).add(square.mul(-0.5));
  return exponent.fma(0.693359375, t.add(small));
}

/** Cosine and sine of a uniformly random angle: two bits choose the quadrant, thirty the angle from its middle. */
function direction(bits: Value<U32>): readonly [Value<F32>, Value<F32>] {
  const quadrant = bits.shiftRight(30);
  const fromMiddle = bits
    .and(0x3fffffff)
    .bitcast(i32)
    .sub(2 ** 29)
    .to(f32);
  const angle = fromMiddle.mul(Math.fround(Math.PI / 2 ** 31));
  const square = angle.mul(angle);
  const sine = polynomial(square, [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1])
    .mul(square)
    .fma(angle, angle);
  const cosine = polynomial(square, [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2])
    .mul(square)
    .fma(square, square.fma(-0.5, 1));
  const isOdd = quadrant.and(1).ne(0);
  const x = select(isOdd, sine, cosine);
  const y = select(isOdd, cosine, sine);
  const isLeft = quadrant.eq(1).or(quadrant.eq(2));
  return [select(isLeft, x.neg(), x), select(quadrant.ge(2), y.neg(), y)];
}
