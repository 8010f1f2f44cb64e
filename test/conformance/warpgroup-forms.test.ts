/**
 * @file Every form of warpgroup products: pairs of types, A from registers and from shared memory, both orders of 16-bit
 * operands, signs, tensor maps that round to tf32. Operands are small whole numbers, so that every order of summation
 * gives the same bits; the oracle is a plain sum.
 */
import { type Device, f32, type StorageType } from "tilewright";
import {
  type AnyFragment,
  type BarrierArray,
  barrierInitFence,
  barriers,
  block,
  input,
  type Kernel,
  kernel,
  output,
  proxyFence,
  type SharedMatrixOperand,
  shared,
  tensorMap,
  thread,
  warpgroupCommit,
  warpgroupFence,
  warpgroupFragment,
  warpgroupMma,
  warpgroupWait,
  when,
} from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { generatePtx } from "../../src/codegen/ptx/index.ts";
import { verify } from "../../src/ir/verifier.ts";
import { optimise } from "../../src/passes/index.ts";
import type { MatrixInstruction } from "../../src/target/facts.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { roundToTF32Even } from "../../src/types/round.ts";
import { types } from "../../src/types/types.ts";
import { assemble } from "../support/ptxas.ts";
import { requirement } from "../support/require.ts";
import { onEveryDevice, poisoned } from "./table.ts";

const hopper = nvidiaTarget("sm_90a");
const rows = 64;
const columns = 16;
const steps = 2;

/** One way to multiply. */
interface Form {
  readonly instruction: MatrixInstruction;
  readonly registers: boolean;
  readonly majorA: "k" | "mn";
  readonly majorB: "k" | "mn";
  readonly negateA: boolean;
  readonly negateB: boolean;
}

const plain = { registers: false, majorA: "k", majorB: "k", negateA: false, negateB: false } as const;

function nameOf({ instruction: { a, b, accumulator }, ...form }: Form): string {
  const left = form.registers ? "registers" : `${form.majorA}-major`;
  const sign = (negate: boolean): string => (negate ? "-" : "");
  return `${sign(form.negateA)}${a} (${left}) x ${sign(form.negateB)}${b} (${form.majorB}-major) in ${accumulator}`;
}

function formsOf(wide: MatrixInstruction): readonly Form[] {
  const instruction = { ...wide, n: columns };
  const both = [false, true].map((registers) => ({ ...plain, instruction, registers }));
  // Signs and orders are told apart by width and class alone: one pair of types of each will do.
  if (types[wide.a].class !== "float" || wide.a !== wide.b || wide.accumulator !== "f32") return both;
  const signed = both.map((form) => ({ ...form, negateA: !form.registers, negateB: form.registers }));
  if (types[wide.a].bits !== 16) return [...both, ...signed];
  const turned = both.map(
    (form) => ({ ...form, majorA: form.registers ? "k" : "mn", majorB: "mn" }) as const,
  );
  return [...both, ...signed, ...turned];
}

const forms = hopper.warpgroupMma.filter(({ a }) => a !== "b1").flatMap(formsOf);

/** The array type of a matrix instruction's operand. */
function stored(name: MatrixInstruction["a"]): StorageType {
  return name === "tf32" ? f32 : (types[name] as StorageType);
}

/** Element (line, k) of an operand without swizzle: core matrices of 8 lines by 16 bytes, or of 8 k by 8 lines. */
function placed(
  memory: SharedMatrixOperand["memory"],
  major: "k" | "mn",
  lines: number,
  first: number,
): SharedMatrixOperand {
  const distances =
    major === "k" ? { leadingBytes: 128, strideBytes: 256 } : { leadingBytes: 16 * lines, strideBytes: 128 };
  return { memory, position: first, swizzle: 0, major, ...distances };
}

function offset(major: "k" | "mn", lines: number, unit: number, line: number, k: number): number {
  if (major === "k")
    return ((line >> 3) * 2 + Math.floor(k / unit)) * 8 * unit + (line & 7) * unit + (k % unit);
  return ((k >> 3) * (lines / 8) + (line >> 3)) * 64 + (k & 7) * 8 + (line & 7);
}

/** D = ±A · ±B over two K steps; the first product overwrites what the accumulator holds. */
function productKernel({ instruction, registers, majorA, majorB, negateA, negateB }: Form): Kernel {
  const [typeA, typeB] = [stored(instruction.a), stored(instruction.b)];
  const { k } = instruction;
  return kernel("form", {
    params: { a: input(typeA), b: input(typeB), d: output(stored(instruction.accumulator)) },
    block: 128,
    body({ a, b, d }) {
      const [heldA, heldB] = [shared(typeA, steps * rows * k, 128), shared(typeB, steps * columns * k, 128)];
      const sums = warpgroupFragment(instruction, "accumulator");
      const lefts: AnyFragment[] = [];
      // The host has put both operands into the order in which shared memory wants them.
      for (let e = 0; e < (steps * columns * k) / 128; e++) {
        const at = thread.index.add(128 * e);
        heldB.store(at, b.load(at));
      }
      if (registers) {
        for (let step = 0; step < steps; step++) {
          const left = warpgroupFragment(instruction, "a");
          left.setElements(
            Array.from({ length: left.count }, (_, i) => {
              const { row, column } = left.coordinates(i);
              return a.load(
                row
                  .mul(k)
                  .add(column)
                  .add(step * rows * k),
              );
            }),
          );
          lefts.push(left);
        }
      } else {
        for (let e = 0; e < (steps * rows * k) / 128; e++) {
          const at = thread.index.add(128 * e);
          heldA.store(at, a.load(at));
        }
      }
      sums.fill(7);
      proxyFence();
      block.barrier();
      warpgroupFence();
      for (let step = 0; step < steps; step++) {
        const left = registers ? lefts[step]! : placed(heldA, majorA, rows, step * rows * k);
        const right = placed(heldB, majorB, columns, step * columns * k);
        warpgroupMma(instruction, sums, left, right, { accumulate: step > 0, negateA, negateB });
      }
      warpgroupCommit();
      warpgroupWait(0);
      for (let i = 0; i < sums.count; i++) {
        const { row, column } = sums.coordinates(i);
        d.store(row.mul(columns).add(column), sums.get(i));
      }
    },
  }) as never;
}

/** Whole numbers from -3 to 3 (0 to 6 without a sign), with a period that is no divisor of any extent. */
function numbers(count: number, type: StorageType, seed: number): number[] {
  const low = type.class === "unsigned" ? 0 : -3;
  return Array.from({ length: count }, (_, n) => low + ((n * 5 + Math.floor(n / 7) * 3 + seed) % 7));
}

/** Values of `steps` tiles, line by line, in the order in which the kernel wants them. */
function ordered(
  values: readonly number[],
  lines: number,
  k: number,
  place: (line: number, k: number) => number,
) {
  const result = new Array<number>(values.length);
  values.forEach((value, n) => {
    const [step, line, depth] = [Math.floor(n / (lines * k)), Math.floor(n / k) % lines, n % k];
    result[step * lines * k + place(line, depth)] = value;
  });
  return result;
}

async function check(device: Device, form: Form): Promise<void> {
  const { instruction, registers, majorA, majorB, negateA, negateB } = form;
  const { k } = instruction;
  const [typeA, typeB, typeD] = [instruction.a, instruction.b, instruction.accumulator].map(stored) as [
    StorageType,
    StorageType,
    StorageType,
  ];
  const [left, right] = [numbers(steps * rows * k, typeA, 1), numbers(steps * columns * k, typeB, 4)];
  const place = (major: "k" | "mn", lines: number, type: StorageType) => (line: number, depth: number) =>
    offset(major, lines, 128 / type.bits, line, depth);
  const a = device.array(
    typeA,
    [left.length],
    registers ? left : ordered(left, rows, k, place(majorA, rows, typeA)),
  );
  const b = device.array(typeB, [right.length], ordered(right, columns, k, place(majorB, columns, typeB)));
  const d = poisoned(device, typeD, [rows * columns]);
  await device.run(productKernel(form), { blocks: 1, args: { a, b, d } as never });
  const sign = negateA === negateB ? 1 : -1;
  const expected = Array.from({ length: rows * columns }, (_, e) => {
    const [row, column] = [Math.floor(e / columns), e % columns];
    let sum = 0;
    for (let step = 0; step < steps; step++)
      for (let depth = 0; depth < k; depth++)
        sum += left[(step * rows + row) * k + depth]! * right[(step * columns + column) * k + depth]!;
    return sign * sum + 0;
  });
  expect(Array.from((await d.read()) as Float32Array, (value) => value + 0)).toEqual(expected);
  for (const array of [a, b, d]) array.dispose();
}

/** D = A · B in tf32 from boxes that tensor maps bring, rounded or not. */
function boxedKernel(rounding: "tf32" | undefined): Kernel {
  const instruction: MatrixInstruction = {
    a: "tf32",
    b: "tf32",
    accumulator: "f32",
    m: rows,
    n: columns,
    k: 8,
  };
  const rounded = rounding === undefined ? {} : { rounding };
  return kernel("boxes", {
    params: {
      a: tensorMap(f32, [32, rows], 128, rounded),
      b: tensorMap(f32, [32, columns], 128, rounded),
      d: output(f32),
    },
    block: 128,
    body({ a, b, d }) {
      const [heldA, heldB] = [shared(f32, 32 * rows, 1024), shared(f32, 32 * columns, 1024)];
      const full: BarrierArray = barriers(1);
      const sums = warpgroupFragment(instruction, "accumulator");
      when(thread.index.eq(0), () => {
        full.initialise(0, 1);
        barrierInitFence();
        full.arriveExpect(0, a.boxBytes + b.boxBytes);
        a.load(heldA, 0, [0, 0], { barriers: full, index: 0 });
        b.load(heldB, 0, [0, 0], { barriers: full, index: 0 });
      });
      block.barrier();
      full.wait(0, 0);
      sums.fill(0);
      warpgroupFence();
      for (let k = 0; k < 32; k += 8) {
        const operand = (memory: SharedMatrixOperand["memory"]): SharedMatrixOperand => ({
          memory,
          position: k,
          swizzle: 128,
          major: "k",
        });
        warpgroupMma(instruction, sums, operand(heldA), operand(heldB), { accumulate: k > 0 });
      }
      warpgroupCommit();
      warpgroupWait(0);
      for (let i = 0; i < sums.count; i++) {
        const { row, column } = sums.coordinates(i);
        d.store(row.mul(columns).add(column), sums.get(i));
      }
    },
  }) as never;
}

onEveryDevice((device) => {
  it.for(forms.map((form) => [nameOf(form), form] as const))("%s", async ([, form], { skip }) => {
    const { a, b, accumulator } = form.instruction;
    const known = device().facts.warpgroupMma.some(
      (one) => one.a === a && one.b === b && one.accumulator === accumulator,
    );
    skip(!known, "the target lacks the instruction");
    await check(device(), form);
  });

  it.for([undefined, "tf32"] as const)("boxes of f32, rounding %s", async (rounding, { skip }) => {
    skip(device().facts.warpgroupMma.length === 0, "the target lacks warpgroup products");
    // Eighths of a tf32's last place, ties among them: rounding to even, away from zero and cutting off all differ.
    const left = Array.from({ length: 32 * rows }, (_, n) => Math.fround(1 + ((n * 37) % 64) * 2 ** -13));
    const right = Array.from({ length: 32 * columns }, (_, n) => (n % 32 === Math.floor(n / 32) ? 2 : 0));
    const [a, b] = [device().array(f32, [rows, 32], left), device().array(f32, [columns, 32], right)];
    const d = poisoned(device(), f32, [rows * columns]);
    await device().run(boxedKernel(rounding), { blocks: 1, args: { a, b, d } as never });
    const cut = (x: number): number => Math.floor(x * 1024) / 1024;
    const expected = Array.from({ length: rows * columns }, (_, e) => {
      const value = left[Math.floor(e / columns) * 32 + (e % columns)]!;
      return 2 * (rounding === undefined ? cut(value) : roundToTF32Even(value));
    });
    expect([...(await d.read())]).toEqual(expected);
  });
});

describe.skipIf(!requirement("ptxas").available)("assembled, A in registers", () => {
  const wanted = hopper.warpgroupMma.filter(
    ({ a, b, accumulator }) => a === b && accumulator !== "f16" && a !== "b1",
  );
  it.each(wanted.map((one) => [one.a, one] as const))("%s", (_, one) => {
    const form = { ...plain, instruction: { ...one, n: columns }, registers: true };
    const traced = (productKernel(form) as unknown as { trace(facts: typeof hopper): never }).trace(hopper);
    verify(traced);
    const assembly = assemble(generatePtx(optimise(traced, hopper), hopper).text);
    expect(assembly.succeeded, assembly.log).toBe(true);
    expect(assembly.warnings).toEqual([]);
    expect(assembly.spilledBytes).toBe(0);
  });
});
