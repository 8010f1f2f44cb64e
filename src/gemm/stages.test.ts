import { f32, open } from "tilewright";
import { inout, kernel, thread, when } from "tilewright/lang";
import { expect, it } from "vitest";
import { bindStages, joinSurroundings, noSurroundings, type PlanStage } from "./stages.ts";

/** x = factor · x + addend, so that the order of two of them shows. */
const affine = (factor: number, addend: number) =>
  kernel("affine", {
    params: { x: inout(f32) },
    block: 32,
    body({ x }) {
      when(thread.index.eq(0), () => x.store(0, x.load(0).fma(factor, addend)));
    },
  });

const stage = (factor: number, addend: number, x: unknown): PlanStage => ({
  purpose: "affine",
  kernel: affine(factor, addend) as never,
  arguments: { x },
  blocks: 1,
});

it("launches stages in order, as often as asked", async () => {
  await using device = await open("simulator");
  using x = device.array(f32, [1], [1]);
  const stages = await bindStages(device, [stage(1, 1, x), stage(3, 0, x), stage(1, -1, x)], undefined);
  stages.launch();
  expect(await x.item(0)).toBe(5);
  stages.launch();
  expect(await x.item(0)).toBe(17);
  expect(stages.compiled.map(({ name }) => name)).toEqual(["affine", "affine", "affine"]);
  stages.dispose();
});

it("gives back what was bound when a later stage cannot be", async () => {
  await using device = await open("simulator");
  using x = device.array(f32, [1], [1]);
  const wrong = { ...stage(1, 1, x), arguments: { x: 3 } };
  await expect(bindStages(device, [stage(1, 1, x), wrong], undefined)).rejects.toThrow(/x/);
});

it("joins surroundings in order", async () => {
  await using device = await open("simulator");
  using x = device.array(f32, [1]);
  using y = device.array(f32, [1]);
  const [first, second] = [stage(1, 1, x), stage(2, 2, y)];
  const joined = joinSurroundings([
    { workspaces: [x], arguments: { x }, before: [first], after: [second] },
    noSurroundings,
    { workspaces: [y], arguments: { y }, before: [], after: [first] },
  ]);
  expect(joined.workspaces).toEqual([x, y]);
  expect(Object.keys(joined.arguments)).toEqual(["x", "y"]);
  expect(joined.before).toEqual([first]);
  expect(joined.after).toEqual([second, first]);
});
