/** @file Captured work: a chain of launches that one call enqueues again. */
import { ArgumentError, DisposedError, f32 } from "tilewright";
import { map } from "tilewright/array-ops";
import { planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { expectSame, onEveryDevice } from "./table.ts";

onEveryDevice((device) => {
  describe("a graph", () => {
    it("of a chain of products and a copy gives what the chain gives, each time", async () => {
      using a = device().array(f32, [2, 2], [1, 1, 0, 1]);
      using sum = device().array(f32, [2, 2]);
      using next = device().array(f32, [2, 2]);
      // sum ← A · A + sum, next ← A · sum.
      using add = await planGemm(a, a, { c: sum, d: sum });
      using multiply = await planGemm(a, sum, { d: next });
      using seen = device().array(f32, [2, 2]);
      using graph = device().capture(() => {
        add.run();
        multiply.run();
        device().copy(next, seen);
      });
      expectSame(await seen.read(), [0, 0, 0, 0]);
      for (let turn = 1; turn <= 3; turn++) {
        graph.launch();
        expectSame(await sum.read(), [turn, 2 * turn, 0, turn]);
        expectSame(await seen.read(), [turn, 3 * turn, 0, turn]);
      }
    });

    it("keeps its arguments when a plan is disposed, not when an array is", async () => {
      const a = device().array(f32, [1, 1], [3]);
      const d = device().array(f32, [1, 1]);
      const plan = await planGemm(a, a, { d });
      using graph = device().capture(() => plan.run());
      plan.dispose();
      graph.launch();
      expectSame(await d.read(), [9]);
      a.dispose();
      expect(() => graph.launch()).toThrow(DisposedError);
      d.dispose();
    });

    it("refuses allocations and writes, and captures nothing then", async () => {
      using x = device().array(f32, [4], [1, 2, 3, 4]);
      expect(() => device().capture(() => x.write([0, 0, 0, 0]))).toThrow(ArgumentError);
      expect(() => device().capture(() => device().empty(f32, [4]))).toThrow(
        "allocating memory cannot be captured",
      );
      using doubled = await map(x, (value) => value.mul(2));
      expectSame(await doubled.read(), [2, 4, 6, 8]);
    });
  });
});
