import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { f32, u8, u16 } from "../types/index.ts";
import { describeNpy } from "./header.ts";
import { loadNpy, openFile, saveNpy, writeFileBeside } from "./node.ts";
import { readNpyChunks } from "./read.ts";
import { writeNpyChunks } from "./write.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tilewright-npy-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const array = { type: f32, shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } as const;

test("saves and loads, leaving nothing else behind", async () => {
  const path = join(folder, "a.npy");
  await saveNpy(path, array);
  expect(await loadNpy(path)).toMatchObject({ type: f32, shape: [2, 2], data: array.data });
  expect(await readdir(folder)).toEqual(["a.npy"]);
});

test("streams in pieces, both ways", async () => {
  const path = join(folder, "b.npy");
  function* pieces(): Generator<Uint16Array> {
    for (let i = 0; i < 100; i++) yield new Uint16Array(1000).fill(i);
  }
  await writeFileBeside(path, (sink) => writeNpyChunks(sink, { type: u16, shape: [100, 1000] }, pieces()));
  await using source = await openFile(path);
  const description = await describeNpy(source);
  let sum = 0;
  for await (const { data } of readNpyChunks(source, { ...description, type: u16 }, 4096))
    for (const x of data) sum += x;
  expect(sum).toBe(1000 * 4950);
});

test("a failure while writing keeps the old file and removes the temporary one", async () => {
  const path = join(folder, "c.npy");
  await writeFile(path, "old");
  const failing = writeFileBeside(path, async (sink) => {
    await sink.write(Uint8Array.of(1, 2, 3));
    throw new Error("changed my mind");
  });
  await expect(failing).rejects.toThrow("changed my mind");
  expect(await readFile(path, "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["c.npy"]);
});

test("keeps the permissions of the file it replaces, and follows links", async () => {
  const path = join(folder, "d.npy");
  const link = join(folder, "link.npy");
  await writeFile(path, "old");
  await chmod(path, 0o600);
  await symlink(path, link);
  await saveNpy(link, array);
  expect((await loadNpy(path)).elements).toBe(4);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect((await readdir(folder)).sort()).toEqual(["d.npy", "link.npy"]);
});

test("paths that cannot be written are FileErrors, with nothing left behind", async () => {
  await mkdir(join(folder, "sub"));
  await writeFile(join(folder, "plain"), "");
  const missing = join(folder, "nowhere", "x.npy");
  await expect(saveNpy(missing, array)).rejects.toThrow(FileError);
  await expect(saveNpy(missing, array)).rejects.toThrow(
    /nowhere.x\.npy: cannot be written: no such file or folder/,
  );
  await expect(saveNpy(join(folder, "sub"), array)).rejects.toThrow(/it is a folder/);
  await expect(saveNpy(join(folder, "plain", "x.npy"), array)).rejects.toThrow(FileError);
  await expect(saveNpy(join(folder, "n".repeat(300)), array)).rejects.toThrow(/name is too long/);
  expect((await readdir(folder)).sort()).toEqual(["plain", "sub"]);
});

test("paths that cannot be read are FileErrors", async () => {
  await expect(loadNpy(join(folder, "none.npy"))).rejects.toThrow(
    /none\.npy: cannot be opened: no such file/,
  );
  await expect(loadNpy(folder)).rejects.toThrow(FileError);
  await writeFile(join(folder, "text.npy"), "hello, this is text");
  await expect(loadNpy(join(folder, "text.npy"))).rejects.toThrow(/text\.npy: not a \.npy file/);
});

test("a file cut off while it is open is a FileError", async () => {
  const path = join(folder, "e.npy");
  await saveNpy(path, { type: u8, shape: [1000], data: new Uint8Array(1000) });
  await using source = await openFile(path);
  const description = await describeNpy(source);
  await writeFile(path, (await readFile(path)).subarray(0, 500));
  await expect(readNpyChunks(source, description).next()).rejects.toThrow(
    /asked for 1000 bytes at 128, got 372/,
  );
});
