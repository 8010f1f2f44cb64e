/** A fault on a real device, where there is one. In a file, and so a process, of its own: it loses the context. */
import { describe, expect, it } from "vitest";
import { DeviceError } from "../../errors.ts";
import { CudaBackend, createCudaBackend } from "./index.ts";
import { faultPtx, waitPtx } from "./ptx-for-tests.ts";

const opened = await createCudaBackend();

describe.skipIf(!(opened instanceof CudaBackend))("a fault on a real CUDA device", () => {
  const backend = opened as CudaBackend;

  it("rejects the next wait, naming status and launch, and all that follows", async () => {
    const target = backend.facts.name;
    const wait = backend
      .loadPtx(waitPtx(target), "wait")
      .kernel("wait", { parameters: ["u64"], block: [1, 1, 1] });
    const fault = backend
      .loadPtx(faultPtx(target), "fault")
      .kernel("fault", { parameters: [], block: [1, 1, 1] });
    const buffer = backend.allocate(16);
    wait.launch([1, 1, 1], [{ kind: "number", value: 1000 }]);
    await backend.sync();
    fault.launch([1, 1, 1], []);
    const error = await backend.sync().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DeviceError);
    expect((error as DeviceError).status).toBe("CUDA_ERROR_ILLEGAL_ADDRESS");
    expect((error as DeviceError).message).toContain("kernel fault (grid 1 x 1 x 1)");
    expect(() => backend.allocate(16)).toThrow("kernel fault");
    await expect(backend.read(buffer, 0, new Uint8Array(16))).rejects.toThrow("kernel fault");
    backend.free(buffer);
    backend.dispose();
  });
});
