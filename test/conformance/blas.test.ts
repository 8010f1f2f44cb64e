import {
  ArgumentError,
  type DeviceArray,
  f16,
  f32,
  f64,
  ShapeError,
  type StorageType,
  UnsupportedError,
} from "tilewright";
import { algebraMatrix, blas, complex, fmaOperator, type Half } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { generator } from "../support/random.ts";
import { normal } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

/** Matrices of numbers on the host. */
type Host = readonly (readonly number[])[];
const unit = { f16: 2 ** -11, f32: 2 ** -24, f64: 2 ** -53 } as const;

const zeros = (rows: number, columns: number, value: (i: number, j: number) => number): Host =>
  Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => value(i, j)));
const transposed = (x: Host): Host => zeros(x[0]!.length, x.length, (i, j) => x[j]![i]!);
const isIn = (half: Half, i: number, j: number): boolean => (half === "lower" ? i >= j : i <= j);

onEveryDevice((device) => {
  /** The plain operator with little in a lane: kernels that are soon traced. */
  const options = (type: StorageType = f32) => {
    // The usual operator of f16 is a matrix instruction.
    if (type === f16) return {};
    const { width } = device().facts.subgroup;
    const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
    const shape = { laneRows, laneColumns: width / laneRows, rows: 2, columns: 2 };
    return { operator: fmaOperator(shape) };
  };

  /** A matrix in either order, with NaN where it must not be read. */
  function stored(
    type: StorageType,
    x: Host,
    major: "row" | "column",
    counts: (i: number, j: number) => boolean,
  ) {
    const held = zeros(x.length, x[0]!.length, (i, j) => (counts(i, j) ? x[i]![j]! : Number.NaN));
    if (major === "row") return device().array(type, [x.length, x[0]!.length], held.flat());
    return device().array(type, [x[0]!.length, x.length], transposed(held).flat()).transposed;
  }

  /** Numbers that f16 holds, so that the oracle multiplies what the device does. */
  function random(rows: number, columns: number, seed: number): Host {
    const next = generator(seed);
    return zeros(rows, columns, () => Math.round(normal(next) * 64) / 64);
  }

  /** Checks C against alpha · A · B + beta · C where `counts`; elsewhere it must be what it was. */
  async function judge(
    what: string,
    type: keyof typeof unit,
    got: DeviceArray,
    [alpha, a, b]: readonly [number, Host, Host],
    [beta, c]: readonly [number, Host | undefined],
    counts: (i: number, j: number) => boolean = () => true,
  ): Promise<void> {
    const columns = b[0]!.length;
    const values = Array.from((await got.read()) as Float32Array);
    const narrow = unit[type === "f64" ? "f64" : "f32"];
    for (let i = 0; i < a.length; i++) {
      for (let j = 0; j < columns; j++) {
        const value = values[i * columns + j]!;
        if (!counts(i, j)) {
          expect(value, `${what}: [${i}, ${j}] of the other half`).toBeNaN();
          continue;
        }
        const terms = a[i]!.map((x, k) => x * b[k]![j]!);
        const sum = (of: readonly number[]): number => of.reduce((total, x) => total + x, 0);
        const old = beta === 0 ? 0 : beta * c![i]![j]!;
        const expected = alpha * sum(terms) + old;
        const sizes = Math.abs(alpha) * sum(terms.map(Math.abs)) + Math.abs(old);
        const allowed = narrow * (a[0]!.length + 4) * sizes + 2 * unit[type] * Math.abs(expected);
        expect(Math.abs(value - expected), `${what}: [${i}, ${j}]`).toBeLessThanOrEqual(allowed);
      }
    }
  }

  const has = (type: StorageType): boolean =>
    device().facts.storage.has(type.name) && device().facts.arithmetic.has(type.name);
  const types = () => ([f32, f16, f64] as const).filter(has);

  describe("BLAS", () => {
    it("symm reads one half, on either side", async () => {
      for (const [i, type] of types().entries()) {
        for (const side of ["L", "R"] as const) {
          const half = (["lower", "upper"] as const)[(i + (side === "L" ? 0 : 1)) % 2]!;
          const [m, n] = [19, 10];
          const extent = side === "L" ? m : n;
          const a = random(extent, extent, 1 + i);
          const whole = zeros(extent, extent, (r, c) => (isIn(half, r, c) ? a[r]![c]! : a[c]![r]!));
          const [b, c] = [random(m, n, 2), random(m, n, 3)];
          const beta = side === "L" ? 2 : 0;
          const target = stored(type, c, "row", () => beta !== 0);
          const left = stored(type, a, side === "L" ? "row" : "column", (r, s) => isIn(half, r, s));
          const right = stored(type, b, "column", () => true);
          await blas.symm(side, half, -1.5, left, right, beta, target, options(type));
          const factors = side === "L" ? ([-1.5, whole, b] as const) : ([-1.5, b, whole] as const);
          await judge(`symm ${side} ${half} ${type.name}`, type.name, target, factors, [beta, c]);
        }
      }
    });

    it("syrk computes one half and leaves the other alone", async () => {
      for (const [i, type] of types().entries()) {
        for (const half of ["lower", "upper"] as const) {
          for (const operation of i === 0 ? (["N", "T"] as const) : (["C"] as const)) {
            const [n, k] = [37, 9];
            const a = operation === "N" ? random(n, k, 4) : random(k, n, 5);
            const c = random(n, n, 6);
            const beta = operation === "N" ? 0 : -0.5;
            const target = stored(
              type,
              c,
              half === "lower" ? "row" : "column",
              (r, s) => beta !== 0 && isIn(half, r, s),
            );
            await blas.syrk(
              half,
              operation,
              2,
              stored(type, a, "row", () => true),
              beta,
              target,
              options(type),
            );
            const [left, right] = operation === "N" ? [a, transposed(a)] : [transposed(a), a];
            const within = (r: number, s: number): boolean => isIn(half, r, s);
            const what = `syrk ${half} ${operation} ${type.name}`;
            await judge(what, type.name, target, [2, left, right], [beta, c], within);
          }
        }
      }
    });

    it("trmm multiplies in place by one triangle, with its diagonal or ones", async () => {
      for (const [i, type] of types().entries()) {
        const rows = [
          ["L", "lower", "N", "N"],
          ["L", "upper", "T", "U"],
          ["R", "lower", "C", "U"],
          ["R", "upper", "N", "N"],
        ] as const;
        for (const [side, half, operation, diagonal] of rows.filter((_, row) => i === 0 || row % 2 === 1)) {
          const [m, n] = [21, 18];
          const extent = side === "L" ? m : n;
          const a = random(extent, extent, 7);
          const held = (r: number, c: number): boolean => isIn(half, r, c) && !(diagonal === "U" && r === c);
          const triangle = zeros(extent, extent, (r, c) =>
            diagonal === "U" && r === c ? 1 : isIn(half, r, c) ? a[r]![c]! : 0,
          );
          const applied = operation === "N" ? triangle : transposed(triangle);
          const b = random(m, n, 8);
          const target = stored(type, b, side === "L" ? "row" : "column", () => true);
          await blas.trmm(
            side,
            half,
            operation,
            diagonal,
            0.5,
            stored(type, a, "row", held),
            target,
            options(),
          );
          const factors = side === "L" ? ([0.5, applied, b] as const) : ([0.5, b, applied] as const);
          await judge(`trmm ${side} ${half} ${operation} ${diagonal}`, type.name, target, factors, [
            0,
            undefined,
          ]);
        }
      }
    });

    it("reads nothing where factors are zero", async () => {
      const nothing = () => device().array(f32, [3, 3], new Array(9).fill(Number.NaN));
      const a = nothing();
      const targets = [nothing(), nothing(), nothing()] as const;
      await blas.symm("L", "lower", 0, a, nothing(), 0, targets[0], options());
      await blas.trmm("R", "upper", "N", "N", 0, a, targets[1], options());
      await blas.syrk("lower", "N", 0, a, 0, targets[2], options());
      for (const target of targets.slice(0, 2))
        expect([...(await target.read())]).toEqual(new Array(9).fill(0));
      const n = Number.NaN;
      expect([...(await targets[2].read())]).toEqual([0, n, n, 0, 0, n, 0, 0, 0]);
    });

    it("refuses what does not go together, in words", async () => {
      const [a, wide] = [device().array(f32, [4, 4]), device().array(f32, [4, 6])];
      const z = algebraMatrix(complex, device().array(f32, [4, 4, 2])) as never;
      const b = () => device().array(f32, [4, 4]);
      await expect(blas.symm("L", "lower", 1, wide, b(), 0, b())).rejects.toThrow(ShapeError);
      await expect(blas.symm("X" as never, "lower", 1, a, b(), 0, b())).rejects.toThrow(/side is "L" or "R"/);
      await expect(blas.symm("L", "lower", 1, z, b(), 0, b())).rejects.toThrow(UnsupportedError);
      await expect(blas.syrk("both" as never, "N", 1, a, 0, b())).rejects.toThrow(/"lower" or "upper"/);
      await expect(blas.syrk("lower", "N", 1, a, 0, wide)).rejects.toThrow(/C is square/);
      await expect(blas.syrk("lower", "N", 1, a, 0, a)).rejects.toThrow(/D overlaps A/);
      await expect(blas.trmm("L", "lower", "N", "X" as never, 1, a, b())).rejects.toThrow(ArgumentError);
      await expect(blas.trmm("L", "lower", "N", "N", 1, a, a)).rejects.toThrow(/overlaps A/);
      await expect(blas.trmm("L", "lower", "N", "N", 1, device().array(f32, [3, 3]), b())).rejects.toThrow(
        ShapeError,
      );
    });
  });
});
