/** @file Chains of conversions and bit casts keep their meaning when simplified. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { KernelBuilder } from "../ir/builder-for-tests.ts";
import { convertValue } from "../types/convert.ts";
import {
  bf16,
  bool,
  type ElementType,
  e4m3,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  index,
  u8,
  u16,
  u32,
  u64,
} from "../types/types.ts";
import { fold } from "./fold.ts";
import { interpret } from "./interpreter-for-tests.ts";

const types: readonly ElementType[] = [
  bool,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  index,
  f16,
  bf16,
  e4m3,
  f32,
  f64,
];

test("a conversion of a conversion", () => {
  const values = fc.oneof(
    fc.integer(),
    fc.double({ noNaN: true, min: -1e6, max: 1e6 }),
    fc.constantFrom(0, -0, 0.5, 1, 255, 256, 65504, 1e30, Number.NaN, -1),
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...types),
      fc.constantFrom(...types),
      fc.constantFrom(...types),
      values,
      (from, middle, to, number) => {
        const b = new KernelBuilder();
        const start = b.parameter(b.scalarParameter("x", from));
        const end = b.convert(b.convert(start, middle), to);
        b.effect("print", [end], { parts: ["", ""] });
        const value = convertValue(number, f64, from);
        const kernel = b.build();
        const before = convertValue(convertValue(value, from, middle), middle, to);
        const statement = fold(kernel).body.statements.at(-1)!;
        const operand = statement.kind === "operation" ? statement.operands[0]! : undefined;
        const trimmed = { ...fold(kernel), body: { statements: fold(kernel).body.statements.slice(0, -1) } };
        let after: unknown;
        interpret(trimmed, {
          builtins: {},
          parameters: [value],
          observe: (made, computed) => {
            if (operand?.kind === "value" && made.id === operand.id) after = computed;
          },
        });
        expect(after).toBe(before);
      },
    ),
    { numRuns: 5000, seed: 5 },
  );
});
