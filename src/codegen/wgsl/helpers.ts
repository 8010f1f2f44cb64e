/**
 * @file Functions of generated modules: what takes several steps in WGSL. A module has those that its kernel uses, after
 * the ones that they use themselves.
 *
 * Conversions between floats work on bits throughout: WGSL leaves open how its own round and whether they keep subnormal
 * numbers.
 */

export interface Helper {
  readonly text: string;
  readonly uses?: readonly HelperName[];
}

export type HelperName =
  | "is_nan_f32"
  | "is_nan_f16"
  | "min_f32"
  | "max_f32"
  | "min_f16"
  | "max_f16"
  | "floor_div_i32"
  | "floor_mod_i32"
  | "mul_high_u32"
  | "mul_high_i32"
  | "to_i32"
  | "to_u32"
  | "odd_u32"
  | "odd_i32"
  | "tanh_f32"
  | "round_bf16"
  | "round_f16"
  | "widen_f16"
  | "round_small"
  | "round_e4m3"
  | "round_e5m2"
  | "widen_e4m3"
  | "widen_e5m2"
  | "round_tf32"
  | "permute_bytes";

function extremum(name: "min" | "max", type: "f32" | "f16"): Helper {
  return {
    uses: [`is_nan_${type}`],
    text: `fn ${name}_${type}(a: ${type}, b: ${type}) -> ${type} {
  return select(select(${name}(a, b), a, is_nan_${type}(b)), b, is_nan_${type}(a));
}`,
  };
}

export const helpers: { readonly [Name in HelperName]: Helper } = {
  is_nan_f32: {
    text: `fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}`,
  },
  is_nan_f16: {
    text: `fn is_nan_f16(x: f16) -> bool {
  return (bitcast<u32>(vec2<f16>(x, 0.0h)) & 0x7fffu) > 0x7c00u;
}`,
  },
  min_f32: extremum("min", "f32"),
  max_f32: extremum("max", "f32"),
  min_f16: extremum("min", "f16"),
  max_f16: extremum("max", "f16"),

  floor_div_i32: {
    text: `fn floor_div_i32(a: i32, b: i32) -> i32 {
  let quotient = a / b;
  let inexact = b != 0i && a - quotient * b != 0i && ((a ^ b) < 0i);
  return select(quotient, quotient - 1i, inexact);
}`,
  },
  floor_mod_i32: {
    text: `fn floor_mod_i32(a: i32, b: i32) -> i32 {
  let rest = a % b;
  return select(rest, rest + b, rest != 0i && ((rest ^ b) < 0i));
}`,
  },
  mul_high_u32: {
    text: `fn mul_high_u32(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let cross = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (cross >> 16u);
}`,
  },
  mul_high_i32: {
    uses: ["mul_high_u32"],
    text: `fn mul_high_i32(a: i32, b: i32) -> i32 {
  let high = i32(mul_high_u32(u32(a), u32(b)));
  return high - select(0i, b, a < 0i) - select(0i, a, b < 0i);
}`,
  },

  to_i32: {
    uses: ["is_nan_f32"],
    text: `fn to_i32(x: f32) -> i32 {
  if (is_nan_f32(x)) { return 0i; }
  if (x >= 2147483648.0f) { return 2147483647i; }
  if (x <= -2147483648.0f) { return -2147483647i - 1i; }
  return i32(x);
}`,
  },
  to_u32: {
    uses: ["is_nan_f32"],
    text: `fn to_u32(x: f32) -> u32 {
  if (is_nan_f32(x) || x <= 0.0f) { return 0u; }
  if (x >= 4294967296.0f) { return 4294967295u; }
  return u32(x);
}`,
  },
  // Rounded to odd: a second rounding, to fewer bits, gives what a single one would.
  odd_u32: {
    text: `fn odd_u32(x: u32) -> f32 {
  let lost = select(0u, 0x100u, (x & 0xffu) != 0u);
  return f32(select((x & 0xffffff00u) | lost, x, x < 0x1000000u));
}`,
  },
  odd_i32: {
    uses: ["odd_u32"],
    text: `fn odd_i32(x: i32) -> f32 {
  let magnitude = odd_u32(u32(abs(x)));
  return select(magnitude, -magnitude, x < 0i);
}`,
  },
  // Large arguments overflow on the way in some implementations; beyond 10 the result is 1 in f32.
  tanh_f32: {
    text: `fn tanh_f32(x: f32) -> f32 {
  return select(tanh(clamp(x, -10.0f, 10.0f)), x, (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u);
}`,
  },

  round_bf16: {
    text: `fn round_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0x7fffu; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}`,
  },
  round_f16: {
    text: `fn round_f16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0x7fffu; }
  if (magnitude >= 0x47800000u) { return sign | 0x7c00u; }
  if (magnitude >= 0x38800000u) {
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
  }
  if (magnitude <= 0x33000000u) { return sign; }
  let shift = 126u - (magnitude >> 23u);
  let significand = (magnitude & 0x7fffffu) | 0x800000u;
  let kept = significand >> shift;
  let rest = significand & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
}`,
  },
  widen_f16: {
    text: `fn widen_f16(bits: u32) -> f32 {
  let sign = (bits & 0x8000u) << 16u;
  let magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {
    return bitcast<f32>(sign | 0x7f800000u | select(0u, 0x7fffffu, magnitude > 0x7c00u));
  }
  if (magnitude >= 0x400u) { return bitcast<f32>(sign | ((magnitude << 13u) + 0x38000000u)); }
  if (magnitude == 0u) { return bitcast<f32>(sign); }
  let shift = countLeadingZeros(magnitude) - 21u;
  return bitcast<f32>(sign | ((113u - shift) << 23u) | ((magnitude << (shift + 13u)) & 0x7fffffu));
}`,
  },
  // The magnitude of a float with `fraction` explicit bits and its least normal exponent, from that of an f32.
  round_small: {
    text: `fn round_small(magnitude: u32, fraction: u32, least: u32) -> u32 {
  let exponent = magnitude >> 23u;
  if (exponent >= least) {
    let drop = 23u - fraction;
    let moved = magnitude - ((least - 1u) << 23u);
    return (moved + (1u << (drop - 1u)) - 1u + ((moved >> drop) & 1u)) >> drop;
  }
  let shift = 23u - fraction + least - exponent;
  if (exponent == 0u || shift > 25u) { return 0u; }
  let significand = (magnitude & 0x7fffffu) | 0x800000u;
  let kept = significand >> shift;
  let rest = significand & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  return kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u));
}`,
  },
  round_e4m3: {
    uses: ["round_small"],
    text: `fn round_e4m3(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0x7fu; }
  return ((bits >> 24u) & 0x80u) | select(min(round_small(magnitude, 3u, 121u), 0x7eu), 0x7eu, magnitude >= 0x43e00000u);
}`,
  },
  round_e5m2: {
    uses: ["round_small"],
    text: `fn round_e5m2(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return 0x7fu; }
  return ((bits >> 24u) & 0x80u) | select(min(round_small(magnitude, 2u, 113u), 0x7bu), 0x7bu, magnitude >= 0x47600000u);
}`,
  },
  widen_e4m3: {
    text: `fn widen_e4m3(bits: u32) -> f32 {
  let sign = (bits & 0x80u) << 24u;
  let magnitude = bits & 0x7fu;
  if (magnitude == 0x7fu) { return bitcast<f32>(sign | 0x7fffffffu); }
  if (magnitude >= 8u) { return bitcast<f32>(sign | ((magnitude << 20u) + 0x3c000000u)); }
  let small = f32(magnitude) * 0.001953125f;
  return bitcast<f32>(sign | bitcast<u32>(small));
}`,
  },
  widen_e5m2: {
    uses: ["widen_f16"],
    text: `fn widen_e5m2(bits: u32) -> f32 {
  return widen_f16((bits & 0xffu) << 8u);
}`,
  },
  round_tf32: {
    text: `fn round_tf32(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let finite = (bits & 0x7fffffffu) < 0x7f800000u;
  return bitcast<f32>(select(bits, (bits + 0x1000u) & 0xffffe000u, finite));
}`,
  },

  permute_bytes: {
    text: `fn permute_bytes(a: u32, b: u32, selector: u32) -> u32 {
  var word = 0u;
  for (var i = 0u; i < 4u; i += 1u) {
    let nibble = (selector >> (4u * i)) & 15u;
    let chosen = (select(a, b, (nibble & 4u) != 0u) >> (8u * (nibble & 3u))) & 0xffu;
    let spread = select(0u, 0xffu, (chosen & 0x80u) != 0u);
    word |= select(chosen, spread, (nibble & 8u) != 0u) << (8u * i);
  }
  return word;
}`,
  },
};

/** The helpers that are used, in the order in which they are defined here. */
export function helperTexts(used: ReadonlySet<HelperName>): readonly string[] {
  return (Object.keys(helpers) as HelperName[])
    .filter((name) => used.has(name))
    .map((name) => helpers[name].text);
}
