/** @file Copies by the driver: on the device, to it and from it. What the memory can do, as a mark for kernels. */
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { f32 } from "../../src/types/types.ts";
import type { WorkItem } from "../harness.ts";
import { randomBuffer } from "../random.ts";
import type { Suite } from "../suite.ts";

function onDevice(backend: CudaBackend, elements: number): WorkItem {
  const bytes = 4 * elements;
  return {
    id: `f32 x ${elements} on the device`,
    bytes: 2 * bytes,
    limit: "memory",
    prepare: async () => {
      const source = randomBuffer(backend, f32, elements, 1);
      const target = backend.allocate(bytes);
      return {
        contenders: [
          {
            name: "cuMemcpyDtoDAsync",
            role: "peer",
            enqueue: () => backend.copy(source, 0, target, 0, bytes),
          },
        ],
        dispose: () => {
          backend.free(source);
          backend.free(target);
        },
      };
    },
  };
}

/** Writes end when the data are taken, so the host's clock says what a caller waits. */
function toDevice(backend: CudaBackend, bytes: number): WorkItem {
  return {
    id: `${bytes} bytes to the device`,
    bytes,
    clock: "host",
    prepare: async () => {
      const target = backend.allocate(bytes);
      const data = crypto.getRandomValues(new Uint8Array(Math.min(bytes, 65536)));
      const source = new Uint8Array(bytes);
      for (let at = 0; at < bytes; at += data.length) source.set(data.subarray(0, bytes - at), at);
      return {
        contenders: [{ name: "write", role: "ours", enqueue: () => backend.write(target, 0, source) }],
        dispose: () => backend.free(target),
      };
    },
  };
}

export const copySuite: Suite = {
  name: "copy",
  items: (backend) => [
    ...[1 << 20, 1 << 24, 1 << 28, 1 << 30].map((elements) => onDevice(backend, elements)),
    ...[1 << 10, 1 << 20, 1 << 28].map((bytes) => toDevice(backend, bytes)),
  ],
};
