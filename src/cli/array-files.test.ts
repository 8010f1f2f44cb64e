import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AbortedError } from "../errors.ts";
import { loadNpy, saveNpy } from "../npy/node.ts";
import type { Device } from "../runtime/device.ts";
import { open } from "../runtime/open.ts";
import { encode, i32 } from "../types/index.ts";
import { openMatrix, saveArray } from "./array-files.ts";

let folder: string;
let device: Device;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-files-"));
  device = await open("simulator");
});

afterEach(() => {
  device.dispose();
  rmSync(folder, { recursive: true });
});

const path = (name: string): string => join(folder, name);

/** 7 x 5, numbered in the order of the file. */
const numbers = Array.from({ length: 35 }, (_, i) => i);

async function makeFile(order: "row-major" | "column-major", byteOrder: "little" | "big"): Promise<void> {
  await saveNpy(
    path("in.npy"),
    { type: i32, shape: [7, 5], order, data: encode(i32, numbers) },
    { byteOrder },
  );
}

describe("a matrix in pieces", () => {
  it.each([4, 12, 20, 64, 140, 4096])(
    "is the same on the device and back, %i bytes at a time",
    async (chunkBytes) => {
      await makeFile("row-major", "big");
      const file = await openMatrix(path("in.npy"));
      const fractions: number[] = [];
      const matrix = await file.load(device, { chunkBytes, report: (fraction) => fractions.push(fraction) });
      await file.close();
      expect(Array.from(await matrix.read(), Number)).toEqual(numbers);
      expect(fractions).toHaveLength(Math.ceil(140 / Math.min(Math.floor(chunkBytes / 4) * 4, 140)));
      expect(fractions.at(-1)).toBe(1);
      await saveArray(path("out.npy"), matrix, { chunkBytes });
      const { shape, data } = await loadNpy(path("out.npy"));
      expect(shape).toEqual([7, 5]);
      expect(Array.from(data, Number)).toEqual(numbers);
    },
  );

  it("in Fortran's order becomes a transposed view", async () => {
    await makeFile("column-major", "little");
    const file = await openMatrix(path("in.npy"));
    expect([file.rows, file.columns]).toEqual([7, 5]);
    const matrix = await file.load(device, { chunkBytes: 16 });
    await file.close();
    expect(matrix.shape).toEqual([7, 5]);
    expect(matrix.strides).toEqual([1, 7]);
    expect(await matrix.item(2, 3)).toBe(3 * 7 + 2);
  });

  it("written is not, when the work is stopped halfway", async () => {
    writeFileSync(path("out.npy"), "old");
    const array = device.array(i32, [7, 5], numbers);
    const controller = new AbortController();
    const saving = saveArray(path("out.npy"), array, {
      chunkBytes: 16,
      signal: controller.signal,
      report: (fraction) => {
        if (fraction > 0.5) controller.abort();
      },
    });
    await expect(saving).rejects.toThrow(AbortedError);
    expect(readdirSync(folder)).toEqual(["out.npy"]);
    expect(readFileSync(path("out.npy"), "utf8")).toBe("old");
  });

  it("read is not, when the work is stopped halfway", async () => {
    await makeFile("row-major", "little");
    const file = await openMatrix(path("in.npy"));
    const { free } = device.memory();
    await expect(file.load(device, { chunkBytes: 16, signal: AbortSignal.abort() })).rejects.toThrow(
      AbortedError,
    );
    await file.close();
    expect(device.memory().free).toBe(free);
  });
});
