/** @file Errors that point: a type that does not fit, in a helper two calls deep, is blamed on the author's line. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CompileError, f16, f32, open, TraceError } from "tilewright";
import { gemm, type Transform } from "tilewright/gemm";
import { type AnyValue, type F32, input, kernel, output, thread, type Value } from "tilewright/lang";
import { expect, it } from "vitest";

const file = fileURLToPath(import.meta.url);

/** The line of this file that ends in a mark. */
function lineOf(mark: string): number {
  return (
    1 +
    readFileSync(file, "utf8")
      .split("\n")
      .findIndex((line) => line.endsWith(`// ${mark}`))
  );
}

function mixed(x: Value<F32>, half: AnyValue): Value<F32> {
  return x.add(half as never); // the culprit
}
function smoothed(x: Value<F32>, half: AnyValue): Value<F32> {
  return mixed(x.mul(0.5), half);
}

const faulty = kernel("faulty", {
  params: { x: input(f16), y: output(f32) },
  block: 32,
  body({ x, y }) {
    const half = x.load(thread.index);
    y.store(thread.index, smoothed(half.to(f32), half));
  },
});

async function failureOf(work: Promise<unknown>): Promise<TraceError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error instanceof TraceError || error instanceof CompileError).toBe(true);
  return error as TraceError;
}

it("an f16 value where f32 is wanted", async () => {
  await using device = await open("simulator");
  const error = await failureOf(device.compile(faulty));
  expect(error.message).toMatch(/kernel faulty/);
  expect(error.message).toMatch(/f16/);
  expect(error.message).toMatch(/f32/);
  expect(error.message).toContain(`pointing.test.ts:${lineOf("the culprit")}:`);
  expect(error.positions[0]).toMatchObject({ file, line: lineOf("the culprit") });
});

it("the same in a function that a product is given", async () => {
  await using device = await open("simulator");
  const add = (x: AnyValue): AnyValue => x.to(f32).add(x.to(f16) as never); // inside the product
  const wrong: Transform = (x) => add(x);
  const [a, b] = [device.array(f16, [8, 8]), device.array(f16, [8, 8])];
  const error = await failureOf(gemm(a, b, { epilogue: [wrong] }));
  expect(error.message).toMatch(/f16/);
  expect(error.message).toMatch(/f32/);
  expect(error.message).toContain(`pointing.test.ts:${lineOf("inside the product")}:`);
});

it("a comparison that only a JavaScript if has seen", async () => {
  await using device = await open("simulator");
  const branching = kernel("branching", {
    params: { y: output(f32) },
    block: 32,
    body({ y }) {
      if (thread.index.lt(16) as unknown) y.store(thread.index, 1); // the if
    },
  });
  const error = await failureOf(device.compile(branching));
  expect(error.message).toMatch(/nothing uses this comparison; a JavaScript `if`/);
  expect(error.message).toContain(`pointing.test.ts:${lineOf("the if")}:`);
});
