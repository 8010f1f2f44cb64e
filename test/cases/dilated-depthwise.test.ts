/** @file A dilated depthwise convolution with numbers to check by hand. */
import { f32 } from "tilewright";
import { conv2d } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { onEveryDevice } from "../conformance/table.ts";

const image = Array.from({ length: 25 }, (_, i) => i);
const filter = Array.from({ length: 9 }, (_, i) => i + 1);
const padded = [
  [200, 228, 326, 200, 224],
  [340, 368, 521, 320, 344],
  [486, 519, 732, 447, 474],
  [208, 224, 305, 176, 188],
  [288, 304, 410, 236, 248],
].flat();

onEveryDevice((device) => {
  describe("3 x 3 weights two pixels apart on 5 x 5 pixels, each channel by itself", () => {
    it.each([
      ["without padding", 0, [732]],
      ["with zeros around", 2, padded],
    ] as const)("%s", async (_, padding, expected) => {
      // The second channel is the first one's negative, and so is its result.
      const x = device().array(f32, [1, 2, 5, 5], [...image, ...image.map((value) => -value)]);
      const w = device().array(f32, [2, 1, 3, 3], [...filter, ...filter]);
      const y = await conv2d(x, w, { layout: "NCHW", groups: 2, dilation: 2, padding });
      const values = [...(await y.read())];
      expect(values.slice(0, expected.length)).toEqual(expected);
      expect(values.slice(expected.length)).toEqual(expected.map((value) => -value));
      for (const array of [x, w, y]) array.dispose();
    });
  });
});
