/** @file Exact powers of two as doubles, by table: `2 ** n` is not promised to be exact by the language. */

const lowest = -1074;
const highest = 1023;
const powers: Float64Array = new Float64Array(highest - lowest + 1);
for (let exponent = 0, power = 1; exponent <= highest; exponent++, power *= 2)
  powers[exponent - lowest] = power;
for (let exponent = 0, power = 1; exponent >= lowest; exponent--, power /= 2)
  powers[exponent - lowest] = power;

/** 2 to the power of an integer: 0 below -1074 and infinity above 1023. */
export function powerOfTwo(exponent: number): number {
  if (exponent < lowest) return 0;
  if (exponent > highest) return Infinity;
  return powers[exponent - lowest]!;
}
