/**
 * @file `.npy` files on disk under Node.js. The only file here that knows the file system, so that browsers can have the
 * rest.
 */

import { randomBytes } from "node:crypto";
import { type FileHandle, open, realpath, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FileError } from "../errors.ts";
import type { StorageType } from "../types/index.ts";
import type { ByteSink, ByteSource } from "./bytes.ts";
import type { NpyReadOptions } from "./header.ts";
import { type NpyArray, readNpy } from "./read.ts";
import { type NpyInput, type NpyWriteOptions, writeNpy } from "./write.ts";

/** An open file; to be closed, by `await using` or by hand. */
export interface FileSource extends ByteSource, AsyncDisposable {
  close(): Promise<void>;
}

/** Opens a regular file for reading. @throws FileError when it does not exist, is no file or may not be read */
export async function openFile(path: string): Promise<FileSource> {
  const handle = await open(path, "r").catch((cause: unknown) => {
    throw systemError(path, "cannot be opened", cause);
  });
  try {
    const status = await handle.stat();
    if (!status.isFile()) throw new FileError(`${path}: not a regular file; give the path of a .npy file`);
    return fileSource(path, handle, status.size);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function fileSource(path: string, handle: FileHandle, size: number): FileSource {
  const close = (): Promise<void> => handle.close();
  return {
    name: path,
    size,
    read: (offset, length) => readFully(path, handle, offset, length),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Most bytes that one system call is asked for; some systems take no more than 2 GiB. */
const largestRead: number = 2 ** 30;

/** Fewer bytes than asked for come back only at the end of the file. */
async function readFully(
  path: string,
  handle: FileHandle,
  offset: number,
  length: number,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  while (filled < length) {
    const wanted = Math.min(length - filled, largestRead);
    const { bytesRead } = await handle
      .read(bytes, filled, wanted, offset + filled)
      .catch((cause: unknown) => {
        throw systemError(path, "cannot be read", cause);
      });
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/**
 * Writes a file so that at every moment either the old or the whole new content is there: into a temporary file beside
 * it, flushed to the disk, then renamed. When `write` or the system fails, the temporary file is removed and the old
 * content stays. A symbolic link is followed.
 *
 * @throws FileError when the path cannot be written; whatever `write` throws
 */
export async function writeFileBeside(path: string, write: (sink: ByteSink) => Promise<void>): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const temporary = join(dirname(target), `.tilewright-${randomBytes(8).toString("hex")}.tmp`);
  const mode = await stat(target).then(
    (status) => status.mode & 0o777,
    () => 0o666,
  );
  const handle = await open(temporary, "wx", mode).catch((cause: unknown) => {
    throw systemError(path, "cannot be written", cause);
  });
  try {
    await writeAndClose(path, handle, write);
    await rename(temporary, target).catch((cause: unknown) => {
      throw systemError(path, "cannot be written", cause);
    });
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await flushFolder(dirname(target));
}

async function writeAndClose(
  path: string,
  handle: FileHandle,
  write: (sink: ByteSink) => Promise<void>,
): Promise<void> {
  const failed = (cause: unknown): never => {
    throw systemError(path, "cannot be written", cause);
  };
  try {
    await write({ write: (bytes) => handle.writeFile(bytes).catch(failed) });
    await handle.sync().catch(failed);
  } finally {
    await handle.close();
  }
}

/** Makes the rename itself last. Not every system can flush a folder; the file is whole without it. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => undefined);
  if (folder === undefined) return;
  await folder.sync().catch(() => undefined);
  await folder.close();
}

/** Reads a `.npy` file. @throws FileError naming the file, what is wrong and what would work */
export async function loadNpy(path: string, options?: NpyReadOptions): Promise<NpyArray> {
  const source = await openFile(path);
  try {
    return await readNpy(source, options);
  } finally {
    await source.close();
  }
}

/** Writes a `.npy` file, replacing what is there only when all is written. @throws FileError, ShapeError, TypeMismatchError */
export function saveNpy<T extends StorageType>(
  path: string,
  array: NpyInput<T>,
  options?: NpyWriteOptions,
): Promise<void> {
  return writeFileBeside(path, (sink) => writeNpy(sink, array, options));
}

const remedies: { readonly [code: string]: string } = {
  ENOENT: "no such file or folder; check the path, folders must exist",
  EACCES: "permission denied; choose another path or change the permissions",
  EPERM: "not permitted; choose another path or change the permissions",
  EROFS: "the file system is read-only; choose another path",
  EISDIR: "it is a folder; give the path of a file",
  ENOTDIR: "a part of the path is not a folder; check the path",
  ENOSPC: "the disk is full; free some space",
  ENAMETOOLONG: "the name is too long; choose a shorter one",
  EMFILE: "too many files are open; close some",
};

function systemError(path: string, problem: string, cause: unknown): FileError {
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  const remedy = typeof code === "string" ? remedies[code] : undefined;
  return new FileError(`${path}: ${problem}: ${remedy ?? `the system says ${String(code ?? cause)}`}`, {
    cause,
  });
}
