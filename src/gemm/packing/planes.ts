/**
 * @file Copies that take elements apart: components that lie side by side go to planes of their own, as tensor maps, which
 * cannot leave out numbers of 16 bits, want them.
 */
import {
  type AnyValue,
  block,
  byteSize,
  input,
  type Kernel,
  kernel,
  output,
  type StorageType,
  thread,
  type VectorLanes,
  vector,
  when,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import type { PlanStage } from "../stages.ts";
import { packedAlignment } from "./copies.ts";

const lanesAcross = 32;
const linesDown = 8;

/**
 * Copies `source` [matrices, lines, length · components], lines of neighbours, to `target` [matrices, components, lines,
 * length] of the same type, whose lines begin at multiples of 16 bytes. `alignment` is that of source's lines, in bytes.
 */
export function planesStage(
  purpose: string,
  source: DeviceArray,
  target: DeviceArray,
  alignment: number,
): PlanStage {
  const [matrices, components, lines, length] = target.shape as readonly [number, number, number, number];
  const size = byteSize(target.type);
  const across = lanesAcross * (packedAlignment / size);
  return {
    purpose,
    kernel: kernelFor(target.type, components, Math.min(alignment, packedAlignment) / size),
    arguments: { source, target },
    blocks: [Math.ceil(length / across), Math.ceil(lines / linesDown), matrices],
  };
}

const kernels = new Map<string, Kernel>();

function kernelFor(type: StorageType, components: number, access: number): Kernel {
  const key = `${type.name} ${components} ${access}`;
  const found = kernels.get(key) ?? planesKernel(type, components, access);
  kernels.set(key, found);
  return found;
}

/**
 * Each thread takes as many elements as 16 bytes hold numbers of one component: it reads them in accesses of `access`
 * numbers, neighbours of which lie in the same lines of the cache, and writes 16 bytes to each plane.
 */
function planesKernel(type: StorageType, components: number, access: number): Kernel {
  const width = packedAlignment / byteSize(type);
  return kernel("pack_planes", {
    params: { source: input(type, 3), target: output(type, 4) },
    block: [lanesAcross, linesDown],
    body({ source, target }) {
      const matrix = block.id.z;
      const line = block.id.y.mul(linesDown).add(thread.y);
      const first = block.id.x.mul(lanesAcross).add(thread.x).mul(width);
      const number = (at: number) => source.load(matrix, line, first.mul(components).add(at));
      const several = (at: number): readonly AnyValue[] =>
        source
          .loadVectorAt(access as VectorLanes, source.position(matrix, line, first.mul(components).add(at)))
          .elements();
      const part = (at: number): readonly AnyValue[] => (access === 1 ? [number(at)] : several(at));
      const planes = Array.from({ length: components }, (_, component) => component);
      when(line.lt(target.size(2)), () => {
        when(first.add(width).le(target.size(3)), () => {
          const accesses = (width * components) / access;
          const numbers = Array.from({ length: accesses }, (_, i) => part(i * access)).flat();
          for (const plane of planes) {
            const held = numbers.filter((_, at) => at % components === plane);
            target.storeVectorAt(target.position(matrix, plane, line, first), vector(...held) as never);
          }
        }).otherwise(() => {
          for (let e = 0; e < width; e++)
            when(first.add(e).lt(target.size(3)), () => {
              for (const plane of planes)
                target.store(matrix, plane, line, first.add(e), number(e * components + plane));
            });
        });
      });
    },
  }) as unknown as Kernel;
}
