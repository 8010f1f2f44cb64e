/**
 * @file `interleaveColumns`: B of a gated product out of two matrices.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../errors.ts";
import {
  block,
  index,
  input,
  type Kernel,
  kernel,
  output,
  type StorageType,
  thread,
  variable,
  when,
} from "../lang/index.ts";
import { DeviceArray } from "../runtime/array.ts";
import { gateGroup, gatePair } from "./gate-columns.ts";

/**
 * The B of a gated product: the columns of `gate` (B₁) and `up` (B₂), both k x n, in turn, 16 at a time, into a new array
 * of k x 32·⌈n/16⌉; what is left of the last group is zero. K stays contiguous where it is so in `gate` (a transposed
 * view). Done once for weights; resolves when the work is enqueued.
 *
 * @throws ShapeError, TypeMismatchError, ArgumentError unless both are matrices of one shape, type and device
 */
export async function interleaveColumns(gate: DeviceArray, up: DeviceArray): Promise<DeviceArray> {
  for (const array of [gate, up]) {
    if (!(array instanceof DeviceArray))
      throw new ArgumentError(`interleaveColumns takes two device arrays, not ${String(array)}`);
    array.check("interleaveColumns");
  }
  const [k, n] = gate.shape;
  if (gate.rank !== 2 || up.rank !== 2 || up.shape[0] !== k || up.shape[1] !== n) {
    throw new ShapeError(
      `interleaveColumns takes two matrices of one shape, not ${gate.label} and ${up.label}`,
    );
  }
  if (gate.type !== up.type)
    throw new TypeMismatchError(`interleaveColumns: ${gate.label} and ${up.label} have different types`);
  if (gate.device !== up.device)
    throw new ArgumentError(`interleaveColumns: ${gate.label} and ${up.label} are on different devices`);
  const { device, type } = gate;
  const columns = Math.ceil(n / gateGroup) * gatePair;
  const transposed = gate.strides[0] === 1 && gate.strides[1] !== 1;
  const made = device.empty(type, transposed ? [columns, k] : [k, columns]);
  const result = transposed ? made.transposed : made;
  const size = k * columns;
  if (size === 0) return result;
  await device.run(interleavingKernel(type, transposed), {
    blocks: Math.ceil(size / threads),
    args: {
      gate,
      up,
      made,
      n,
      along: transposed ? k : columns,
      size,
      gateDown: gate.strides[0],
      gateAcross: gate.strides[1],
      upDown: up.strides[0],
      upAcross: up.strides[1],
    } as never,
  });
  return result;
}

const threads = 256;
const kernels: Map<string, Kernel> = new Map();

/** Fills lines of `along` elements: rows of the product's B, or its columns where it lies transposed. */
function interleavingKernel(type: StorageType, transposed: boolean): Kernel {
  const key = `${type.name} ${String(transposed)}`;
  const known = kernels.get(key);
  if (known !== undefined) return known;
  const made = kernel("gemm_interleave_columns", {
    params: {
      gate: input(type, 0),
      up: input(type, 0),
      made: output(type, 0),
      n: index,
      along: index,
      size: index,
      gateDown: index,
      gateAcross: index,
      upDown: index,
      upAcross: index,
    },
    block: threads,
    body({ gate, up, made, n, along, size, ...strides }) {
      const id = block.id.x.to(index).mul(threads).add(thread.index.to(index));
      when(id.lt(size), () => {
        const line = id.div(along);
        const within = id.sub(line.mul(along));
        const [row, column] = transposed ? [within, line] : [line, within];
        const inPair = column.rem(gatePair);
        const own = column.div(gatePair).mul(gateGroup).add(inPair.rem(gateGroup));
        const held = variable(type, 0);
        when(own.lt(n), () => {
          when(inPair.lt(gateGroup), () => {
            held.value = gate.loadAt(row.mul(strides.gateDown).add(own.mul(strides.gateAcross)));
          }).otherwise(() => {
            held.value = up.loadAt(row.mul(strides.upDown).add(own.mul(strides.upAcross)));
          });
        });
        made.storeAt(id, held.value);
      });
    },
  });
  kernels.set(key, made as Kernel);
  return made as Kernel;
}
