/**
 * @file Copies of operands to lines that begin at multiples of 16 bytes: as they lie, or with rows and columns exchanged.
 */
import {
  block,
  byteSize,
  input,
  type Kernel,
  kernel,
  output,
  type StorageType,
  shared,
  thread,
  vector,
  when,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import type { PlanStage } from "../stages.ts";

/** Bytes to which packed lines are aligned. */
export const packedAlignment = 16;

/** Copies [matrices, lines, length] of one type. `source` has neighbours along its last dimension or the one before. */
export function packingStage(purpose: string, source: DeviceArray, target: DeviceArray): PlanStage {
  const [matrices, lines, length] = target.shape as readonly [number, number, number];
  const exchanged = source.strides[2] !== 1;
  const [across, down] = exchanged
    ? [tile, tile]
    : [lanesAcross * (packedAlignment / byteSize(target.type)), linesDown];
  return {
    purpose,
    kernel: kernelFor(exchanged ? "exchanged" : "lines", target.type),
    arguments: { source, target },
    blocks: [Math.ceil(length / across), Math.ceil(lines / down), matrices],
  };
}

const kernels = new Map<string, Kernel>();

function kernelFor(which: "exchanged" | "lines", type: StorageType): Kernel {
  const key = `${which} ${type.name}`;
  let found = kernels.get(key);
  if (found === undefined) {
    found = which === "lines" ? linesKernel(type) : exchangedKernel(type);
    kernels.set(key, found);
  }
  return found;
}

const lanesAcross = 32;
const linesDown = 8;

/** Each thread loads the elements of 16 bytes one by one, neighbours of which lie in the same lines of the cache. */
function linesKernel(type: StorageType): Kernel {
  const width = packedAlignment / byteSize(type);
  return kernel("pack_lines", {
    params: { source: input(type, 3), target: output(type, 3) },
    block: [lanesAcross, linesDown],
    body({ source, target }) {
      const matrix = block.id.z;
      const line = block.id.y.mul(linesDown).add(thread.y);
      const first = block.id.x.mul(lanesAcross).add(thread.x).mul(width);
      const element = (e: number) => source.load(matrix, line, first.add(e));
      when(line.lt(target.size(1)), () => {
        when(first.add(width).le(target.size(2)), () => {
          const elements = Array.from({ length: width }, (_, e) => element(e));
          target.storeVectorAt(target.position(matrix, line, first), vector(...elements) as never);
        }).otherwise(() => {
          for (let e = 0; e < width; e++)
            when(first.add(e).lt(target.size(2)), () => target.store(matrix, line, first.add(e), element(e)));
        });
      });
    },
  }) as unknown as Kernel;
}

/** Lines and columns of a tile. */
const tile = 64;
const threadLines = 4;

/**
 * Tiles through shared memory, so that both sides are accessed along their dense dimension; four bytes of one line leave
 * together.
 */
function exchangedKernel(type: StorageType): Kernel {
  const width = Math.max(1, 4 / byteSize(type));
  const lanes = tile / width;
  const threads = 256;
  return kernel("pack_exchanged", {
    params: { source: input(type, 3), target: output(type, 3) },
    block: threads,
    body({ source, target }) {
      // One word more than a line has, so that a column's elements lie in different banks.
      const held = shared(type, [tile, tile + width]);
      const matrix = block.id.z;
      const [line, column] = [block.id.y.mul(tile), block.id.x.mul(tile)];
      // Unrolled, so that several loads are on their way.
      for (let turn = 0; turn < tile / (threads / tile); turn++) {
        const [x, y] = [thread.index.floorMod(tile), thread.index.floorDiv(tile).add(turn * threadLines)];
        const inside = line
          .add(x)
          .lt(target.size(1))
          .and(column.add(y).lt(target.size(2)));
        when(inside, () => held.store(x, y, source.load(matrix, line.add(x), column.add(y))));
      }
      block.barrier();
      const perTurn = threads / lanes;
      for (let turn = 0; turn < tile / perTurn; turn++) {
        const x = thread.index.floorMod(lanes).mul(width);
        const y = thread.index.floorDiv(lanes).add(turn * perTurn);
        const at = { line: line.add(y), column: column.add(x) };
        const single = (e: number): void => {
          when(at.column.add(e).lt(target.size(2)), () =>
            target.store(matrix, at.line, at.column.add(e), held.load(y, x.add(e))),
          );
        };
        when(at.line.lt(target.size(1)), () => {
          if (width === 1) {
            single(0);
            return;
          }
          when(at.column.add(width).le(target.size(2)), () => {
            const elements = Array.from({ length: width }, (_, e) => held.load(y, x.add(e)));
            target.storeVectorAt(target.position(matrix, at.line, at.column), vector(...elements) as never);
          }).otherwise(() => {
            for (let e = 0; e < width; e++) single(e);
          });
        });
      }
    },
  }) as unknown as Kernel;
}
