/**
 * @file Copies that exchange which dimension is dense, through tiles in shared memory: both sides are then accessed
 * along their dense dimension.
 */
import { block, input, type Kernel, kernel, output, shared, thread, when } from "../lang/index.ts";
import { collapse, type DeviceArray } from "../runtime/array.ts";
import type { StorageType } from "../types/types.ts";

const tile = 32;
const rows = 8;

interface Exchange {
  /** [batch, rows, columns] of the target; the source is dense along rows, the target along columns. */
  readonly shape: readonly number[];
  readonly source: readonly number[];
  readonly target: readonly number[];
}

/** The copy as a batch of transposed matrices, if it is one large enough to gain. */
function exchangeOf(source: DeviceArray, target: DeviceArray): Exchange | undefined {
  const { shape, strides } = collapse(target.shape, [source.strides, target.strides]);
  const [from, to] = [strides[0]!, strides[1]!];
  if (shape.length !== 2 && shape.length !== 3) return undefined;
  const [batch, ...matrix] = shape.length === 3 ? shape : [1, ...shape];
  const pad = (list: readonly number[]): readonly number[] => (shape.length === 3 ? list : [0, ...list]);
  const isExchange = from.at(-2) === 1 && to.at(-1) === 1 && Math.min(...matrix) >= tile / 2;
  if (!isExchange || batch! > 65535 || Math.ceil(matrix[0]! / tile) > 65535) return undefined;
  return { shape: [batch!, ...matrix], source: pad(from), target: pad(to) };
}

/** Whether {@link runTranspose} serves. */
export function canTranspose(source: DeviceArray, target: DeviceArray): boolean {
  return exchangeOf(source, target) !== undefined;
}

/** Enqueues the copy. */
export async function runTranspose<T extends StorageType>(
  source: DeviceArray<T>,
  target: DeviceArray<T>,
): Promise<void> {
  const { shape, source: from, target: to } = exchangeOf(source, target)!;
  const [batch, height, width] = shape as [number, number, number];
  await target.device.run(transposeKernel(target.type), {
    blocks: [Math.ceil(width / tile), Math.ceil(height / tile), batch],
    args: { source: source.strided(shape, from), target: target.strided(shape, to) } as never,
  });
}

const kernels: Map<StorageType, Kernel> = new Map();

function transposeKernel(type: StorageType): Kernel {
  let found = kernels.get(type);
  if (found === undefined) {
    found = makeTransposeKernel(type);
    kernels.set(type, found);
  }
  return found;
}

function makeTransposeKernel(type: StorageType): Kernel {
  return kernel("transpose_copy", {
    params: { source: input(type, 3), target: output(type, 3) },
    block: [tile, rows],
    body({ source, target }) {
      // One more column than the tile has, so that a column's elements lie in different banks.
      const held = shared(type, [tile, tile + 1]);
      const { x, y } = thread;
      const [column, row, batch] = [block.id.x.mul(tile), block.id.y.mul(tile), block.id.z];
      // Unrolled, so that several loads are on their way.
      const lines = Array.from({ length: tile / rows }, (_, turn) => y.add(turn * rows));
      for (const line of lines) {
        const inside = row
          .add(x)
          .lt(target.size(1))
          .and(column.add(line).lt(target.size(2)));
        when(inside, () => held.store(x, line, source.load(batch, row.add(x), column.add(line))));
      }
      block.barrier();
      for (const line of lines) {
        const inside = row
          .add(line)
          .lt(target.size(1))
          .and(column.add(x).lt(target.size(2)));
        when(inside, () => target.store(batch, row.add(line), column.add(x), held.load(line, x)));
      }
    },
  }) as unknown as Kernel;
}
