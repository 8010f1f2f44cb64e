import { expect, it } from "vitest";
import { i32, kernel, output, thread } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { linearise } from "./linearise.ts";
import { parallelise } from "./parallelise.ts";
import { tile, translate } from "./tile.ts";

it.each([
  { size: { M: 16, N: 16 }, part: { M: 2, N: 4 }, count: 8, fastest: "M" },
  { size: { M: 12, N: 10 }, part: { M: 2, N: 1 }, count: 30, fastest: "N" },
  { size: { M: 9, N: 6 }, part: { M: 3, N: 3 }, count: 6, fastest: "N" },
  { size: { M: 4, N: 3 }, part: { M: 1, N: 1 }, count: 4, fastest: "M" },
] as const)("values give the positions that numbers give: %j", async ({ size, part, count, fastest }) => {
  const turns = (size.M * size.N) / (part.M * part.N) / count;
  const positions = kernel("positions", {
    params: { out: output(i32, 2), stride: i32 },
    block: count,
    body({ out, stride }) {
      const subTiles = parallelise(tile(size), part, thread.index, count, { fastest });
      for (const [turn, sub] of subTiles.entries()) {
        const moved = translate(sub, { M: thread.index, N: 5 });
        out.store(0, thread.index.mul(turns).add(turn), linearise(moved, 100));
        out.store(1, thread.index.mul(turns).add(turn), linearise(moved.NM, stride));
        out.store(2, thread.index.mul(turns).add(turn), moved.origin("M"));
      }
    },
  });
  await using device = await open("simulator");
  using out = device.empty(i32, [3, count * turns]);
  await device.run(positions, { blocks: 1, args: { out, stride: 77 } });
  const expected = [0, 1, 2].map((way) =>
    Array.from({ length: count }, (_, entity) =>
      parallelise(tile(size), part, entity, count, { fastest }).map((sub) => {
        const moved = translate(sub, { M: entity, N: 5 });
        return [linearise(moved, 100), linearise(moved.NM, 77), moved.origin("M")][way];
      }),
    ).flat(),
  );
  expect([...(await out.read())]).toEqual(expected.flat());
});
