/**
 * @file Rounding a double to a narrower floating-point type, once and correctly.
 *
 * Each function takes any double and returns the double that holds the rounded value. NaN stays NaN, signed zeros keep
 * their sign, subnormals are kept. Rounding starts from the double itself, never from an f32 in between.
 *
 * The idea: adding an *anchor* of 1.5·2^k to x makes the adder round x to a multiple of 2^(k-52), ties to even;
 * subtracting it again is exact. Only the choice of k depends on x, through its exponent field.
 */

import { powerOfTwo } from "./power-of-two.ts";

const double: Float64Array = new Float64Array(1);
const words: Uint32Array = new Uint32Array(double.buffer);

const exponentBias = 1023;
/** Entry e holds 1.5·2^(e - 1023). The largest index asked for is 1150 + 45 (bf16). */
const anchors: Float64Array = new Float64Array(1280);
for (let e = 0; e < anchors.length; e++) anchors[e] = 1.5 * powerOfTwo(e - exponentBias);

/** The exponent field of x as a double, but at least `least`: below that the grid no longer gets finer. */
function exponentField(x: number, least: number): number {
  double[0] = x;
  const field = (words[1]! >>> 20) & 0x7ff;
  return Math.max(field, least);
}

/**
 * x to the nearest number with `53 - drop` significand bits, ties to even, on the fixed grid of the subnormals below the
 * exponent field `least`. For finite x far from the double's own overflow.
 */
function roundSignificand(x: number, least: number, drop: number): number {
  const anchor = anchors[exponentField(x, least) + drop]!;
  const rounded = x + anchor - anchor;
  return rounded === 0 ? x * 0 : rounded;
}

const leastF16 = exponentBias - 14;
const dropF16 = 53 - 11;
/** The tie between the largest finite f16, 65504, and the 65536 that would follow; it goes to infinity. */
const overflowF16 = 65520;

/** x rounded to binary16, to nearest even; infinity from 65520 on. */
export function roundToF16(x: number): number {
  if (x < overflowF16 && x > -overflowF16) return roundSignificand(x, leastF16, dropF16);
  return x * Infinity;
}

const leastBF16 = exponentBias - 126;
const dropBF16 = 53 - 8;
const overflowBF16: number = 511 * powerOfTwo(119);

/** x rounded to bfloat16, to nearest even; infinity from (2 - 2^-8)·2^127 on. */
export function roundToBF16(x: number): number {
  if (x < overflowBF16 && x > -overflowBF16) return roundSignificand(x, leastBF16, dropBF16);
  return x * Infinity;
}

const leastTF32 = exponentBias - 126;
const dropTF32 = 53 - 11;
const overflowTF32: number = 4095 * powerOfTwo(116);
/** Largest finite tf32, (2 - 2^-10)·2^127. */
const largestTF32: number = 2047 * powerOfTwo(117);

/**
 * x rounded to tf32, to nearest even; infinity on overflow. So do tensor maps of CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 (seen on
 * an H200; no manual tells).
 */
export function roundToTF32Even(x: number): number {
  if (!(x < overflowTF32 && x > -overflowTF32)) return x * Infinity;
  return roundSignificand(x, leastTF32, dropTF32);
}

/** x rounded to tf32, to nearest with ties away from zero as PTX `cvt.rna.tf32.f32` does; infinity on overflow. */
export function roundToTF32(x: number): number {
  if (!(x < overflowTF32 && x > -overflowTF32)) return x * Infinity;
  const field = exponentField(x, leastTF32);
  const anchor = anchors[field + dropTF32]!;
  const even = x + anchor - anchor;
  const error = x - even;
  const halfStep = anchors[field - 11]! / 1.5;
  if (error === halfStep && x > 0) return even + 2 * halfStep;
  if (error === -halfStep && x < 0) return even - 2 * halfStep;
  return even === 0 ? x * 0 : even;
}

/**
 * x cut off to tf32, towards zero, as a tensor core does that ignores the low 13 bits of an f32. Finite values never
 * become infinite.
 */
export function truncateToTF32(x: number): number {
  if (x > largestTF32) return x === Infinity ? x : largestTF32;
  if (x < -largestTF32) return x === -Infinity ? x : -largestTF32;
  if (Number.isNaN(x)) return x;
  const field = exponentField(x, leastTF32);
  const anchor = anchors[field + dropTF32]!;
  const nearest = x + anchor - anchor;
  const step = anchors[field - 10]! / 1.5;
  const cut = x > 0 ? (nearest > x ? nearest - step : nearest) : nearest < x ? nearest + step : nearest;
  return cut === 0 ? x * 0 : cut;
}

const leastE4M3 = exponentBias - 6;
const dropE4M3 = 53 - 4;
/** Largest finite e4m3 (OCP OFP8): the pattern above it is NaN. */
const largestE4M3 = 448;
/** The tie between 448 and the 480 that would follow; it goes to 448, whose significand is even. */
const overflowE4M3 = 464;

/** x rounded to OFP8 E4M3 to nearest even, saturating to ±448 as PTX `cvt.rn.satfinite` does (infinities too). */
export function roundToE4M3(x: number): number {
  if (x >= largestE4M3) return largestE4M3;
  if (x <= -largestE4M3) return -largestE4M3;
  return !Number.isNaN(x) ? roundSignificand(x, leastE4M3, dropE4M3) : x;
}

/** x rounded to OFP8 E4M3 to nearest even; what rounds beyond ±448 (above 464, infinities too) is NaN. */
export function roundToE4M3OrNaN(x: number): number {
  return x <= overflowE4M3 && x >= -overflowE4M3 ? roundToE4M3(x) : NaN;
}

const leastE5M2 = exponentBias - 14;
const dropE5M2 = 53 - 3;
/** Largest finite e5m2. */
const largestE5M2 = 57344;
/** The tie between 57344 and the 65536 that would follow; it goes to infinity. */
const overflowE5M2 = 61440;

/** x rounded to OFP8 E5M2 to nearest even, saturating to ±57344 as PTX `cvt.rn.satfinite` does (infinities too). */
export function roundToE5M2(x: number): number {
  if (x >= largestE5M2) return largestE5M2;
  if (x <= -largestE5M2) return -largestE5M2;
  return !Number.isNaN(x) ? roundSignificand(x, leastE5M2, dropE5M2) : x;
}

/** x rounded to OFP8 E5M2 to nearest even; infinity from 61440 on. */
export function roundToE5M2OrInfinity(x: number): number {
  if (x < overflowE5M2 && x > -overflowE5M2) return roundToE5M2(x);
  return x * Infinity;
}
