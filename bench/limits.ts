/**
 * @file Physical limits of devices, from their makers' data sheets: dense rates at boost clock, memory bandwidth. What
 * can be reached is less: a loaded H200 does not hold its boost clock.
 */

/** What limits a kernel. Operations per second (a multiply-add counts two), or bytes per second. */
export type LimitKind = "f16" | "bf16" | "fp8" | "tf32" | "f32" | "f64" | "f64 tensor" | "int8" | "memory";

type Limits = Readonly<Record<LimitKind, number>>;

const tera = 1e12;

/** NVIDIA H100 and H200 SXM share their processors; the memory differs. */
const hopper: Limits = {
  f16: 989.4 * tera,
  bf16: 989.4 * tera,
  fp8: 1978.9 * tera,
  tf32: 494.7 * tera,
  f32: 66.9 * tera,
  f64: 33.5 * tera,
  "f64 tensor": 66.9 * tera,
  int8: 1978.9 * tera,
  memory: 3.35 * tera,
};

const devices: readonly (readonly [name: RegExp, limits: Limits])[] = [
  [/H200/, { ...hopper, memory: 4.8 * tera }],
  [/H100.*(SXM|HBM3)|H100 80GB HBM3/, hopper],
];

/** The rate of a device, or undefined for one that is not listed here. */
export function limitOf(device: string, kind: LimitKind): number | undefined {
  return devices.find(([name]) => name.test(device))?.[1][kind];
}
