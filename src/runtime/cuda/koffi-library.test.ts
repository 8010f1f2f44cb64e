import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isUnavailable } from "./availability.ts";
import type { DriverLibrary } from "./driver-library.ts";
import { loadDriverLibrary, loadKoffi } from "./koffi-library.ts";

describe("koffi", () => {
  it("loads", async () => {
    expect(await loadKoffi()).toHaveProperty("load");
  });
});

describe("a driver library that is not there", () => {
  it("is a reason with a remedy", async () => {
    const result = await loadDriverLibrary(["libtilewright-no-such-driver.so.1"]);
    expect(result).toMatchObject({
      kind: "cuda",
      reason: expect.stringMatching(
        /^The NVIDIA driver library libtilewright-no-such-driver\.so\.1 cannot be loaded: /,
      ),
      remedy: expect.stringContaining("Install NVIDIA's driver"),
    });
  });

  it.skipIf(process.platform !== "linux")("or is another library, names what it lacks", async () => {
    expect(await loadDriverLibrary(["libm.so.6"])).toMatchObject({
      reason: expect.stringContaining("cuInit"),
    });
  });
});

/** A C compiler makes a library with the driver's symbols, to see that what JavaScript passes is what C gets. */
const source = `
#include <stdint.h>
#include <stddef.h>
#include <string.h>
typedef int R;
typedef uint64_t P;
typedef void *H;
static char seen[4096];
static void note(const char *name) { strcat(seen, name); strcat(seen, " "); }
R cuGetErrorName(R s, const char **t) { *t = s == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : NULL; return s == 700 ? 0 : 1; }
R cuGetErrorString(R s, const char **t) { *t = "text"; return 0; }
R cuInit(unsigned f) { return f == 0 ? 0 : 1; }
R cuDriverGetVersion(int *v) { *v = 13000; return 0; }
R cuDeviceGetCount(int *c) { *c = 3; return 0; }
R cuDeviceGet(int *d, int o) { *d = o + 10; return 0; }
R cuDeviceGetName(char *n, int l, int d) { strncpy(n, "Stub", l); return 0; }
R cuDeviceTotalMem_v2(size_t *b, int d) { *b = 150000000000ull; return 0; }
R cuDeviceGetAttribute(int *v, int a, int d) { *v = a * 1000 + d; return 0; }
R cuDevicePrimaryCtxRetain(H *c, int d) { *c = (H)0x7fffdeadbee0; return 0; }
R cuDevicePrimaryCtxRelease_v2(int d) { return 0; }
R cuCtxSetCurrent(H c) { return c == (H)0x7fffdeadbee0 ? 0 : 201; }
R cuStreamCreate(H *s, unsigned f) { *s = (H)0x7fff00000010; return 0; }
R cuStreamDestroy_v2(H s) { return 0; }
R cuStreamSynchronize(H s) { return 0; }
R cuEventCreate(H *e, unsigned f) { *e = (H)0x20; return 0; }
R cuEventDestroy_v2(H e) { return 0; }
R cuEventRecord(H e, H s) { return e == (H)0x20 && s == (H)0x7fff00000010 ? 0 : 400; }
R cuEventQuery(H e) { return 600; }
R cuEventSynchronize(H e) { return 0; }
R cuEventElapsedTime(float *m, H a, H b) { *m = 1.5f; return 0; }
R cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 1; *t = 2; return 0; }
static char memory[65536];
R cuMemAlloc_v2(P *a, size_t n) { *a = 0x7f4200000000ull; return n == 5000000000ull ? 0 : 2; }
R cuMemFree_v2(P a) { return 0; }
R cuMemHostAlloc(void **a, size_t n, unsigned f) { *a = memory; return 0; }
R cuMemFreeHost(void *a) { return a == memory ? 0 : 1; }
R cuMemcpyHtoDAsync_v2(P d, const void *s, size_t n, H st) { return d == 0x7f4200000000ull && s == memory && ((char *)s)[3] == 42 ? 0 : 1; }
R cuMemcpyDtoHAsync_v2(void *d, P s, size_t n, H st) { memset(d, 7, n); return 0; }
R cuMemcpyDtoDAsync_v2(P d, P s, size_t n, H st) { return 0; }
R cuMemcpyDtoH_v2(void *d, P s, size_t n) { memset(d, 9, n); return 0; }
R cuMemsetD8Async(P d, unsigned char v, size_t n, H s) { return v == 255 ? 0 : 1; }
R cuMemsetD16Async(P d, unsigned short v, size_t n, H s) { return v == 65535 ? 0 : 1; }
R cuMemsetD32Async(P d, unsigned v, size_t n, H s) { return v == 4294967295u ? 0 : 1; }
R cuModuleLoadDataEx(H *m, const void *i, unsigned n, int *o, void **v) {
  if (n == 2 && o[0] == 5 && o[1] == 6) strncpy((char *)v[0], (const char *)i, (size_t)v[1]);
  *m = (H)0x30; return 218;
}
R cuModuleUnload(H m) { return 0; }
R cuModuleGetFunction(H *f, H m, const char *n) { *f = (H)0x40; return strcmp(n, "entry") ? 500 : 0; }
R cuFuncGetAttribute(int *v, int a, H f) { *v = a; return 0; }
R cuFuncSetAttribute(H f, int a, int v) { return a == 8 && v == 200000 ? 0 : 1; }
R cuOccupancyMaxActiveBlocksPerMultiprocessor(int *b, H f, int t, size_t d) { *b = t == 384 && d == 196672 ? 1 : 0; return 0; }
R cuLaunchKernel(H f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, H s, void **p, void **x) {
  return f == (H)0x40 && gx == 2147483647u && gy == 2 && gz == 3 && bx == 4 && by == 5 && bz == 6 && sh == 7
    && s == (H)0x7fff00000010 && *(int *)p[0] == 99 && x == NULL ? 0 : 1;
}
R cuTensorMapEncodeTiled(void *m, int t, unsigned r, void *b, const uint64_t *d, const uint64_t *st, const unsigned *box, const unsigned *es, int i, int sw, int pr, int ob) {
  memset(m, 5, 128);
  return (uintptr_t)m % 64 == 0 && t == 6 && r == 2 && b == (void *)0x7f4200000000ull && d[1] == 77 && st[0] == 512
    && box[1] == 32 && es[1] == 1 && i == 0 && sw == 3 && pr == 2 && ob == 0 ? 0 : 1;
}
`;

const hasCompiler = ((): boolean => {
  try {
    execFileSync("cc", ["--version"], { stdio: "ignore" });
    return process.platform === "linux";
  } catch {
    return false;
  }
})();

describe.skipIf(!hasCompiler)("calls through koffi", () => {
  const folder = mkdtempSync(join(tmpdir(), "driver-stub-"));
  let library: DriverLibrary;

  beforeAll(async () => {
    const file = join(folder, "libstub.so");
    writeFileSync(join(folder, "stub.c"), source);
    execFileSync("cc", ["-shared", "-fPIC", "-w", "-o", file, join(folder, "stub.c")]);
    const loaded = await loadDriverLibrary([file]);
    if (isUnavailable(loaded)) throw new Error(loaded.reason);
    library = loaded;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const u64 = new BigUint64Array(1);
  const i32 = new Int32Array(1);

  it("know which entry points an older driver lacks", () => {
    expect(library.cuMemPoolCreate).toBeUndefined();
    expect(library.cuLaunchKernelEx).toBeUndefined();
    expect(library.cuTensorMapEncodeTiled).toBeTypeOf("function");
  });

  it("bring texts back", () => {
    expect(library.errorName(700)).toBe("CUDA_ERROR_ILLEGAL_ADDRESS");
    expect(library.errorName(4711)).toBeUndefined();
    expect(library.errorText(700)).toBe("text");
    const name = new Uint8Array(32);
    library.cuDeviceGetName(name, 32, 0);
    expect(new TextDecoder().decode(name.subarray(0, 5))).toBe("Stub\0");
  });

  it("bring numbers, handles and sizes beyond 32 bits through", () => {
    expect(library.cuInit(0)).toBe(0);
    expect(library.cuDeviceGet(i32, 2)).toBe(0);
    expect(i32[0]).toBe(12);
    library.cuDeviceTotalMem(u64, 0);
    expect(u64[0]).toBe(150_000_000_000n);
    library.cuDevicePrimaryCtxRetain(u64, 0);
    expect(library.cuCtxSetCurrent(Number(u64[0]))).toBe(0);
    expect(library.cuEventRecord(0x20, 0x7fff00000010)).toBe(0);
    expect(library.cuMemAlloc(u64, 5_000_000_000)).toBe(0);
    expect(Number(u64[0])).toBe(0x7f4200000000);
    const time = new Float32Array(1);
    library.cuEventElapsedTime(time, 0x20, 0x20);
    expect(time[0]).toBe(1.5);
    expect(library.cuMemsetD8Async(0, 255, 1, 0)).toBe(0);
    expect(library.cuMemsetD16Async(0, 65535, 1, 0)).toBe(0);
    expect(library.cuMemsetD32Async(0, 0xffffffff, 1, 0)).toBe(0);
    expect(library.cuFuncSetAttribute(0x40, 8, 200_000)).toBe(0);
    expect(library.cuModuleGetFunction(u64, 0x30, "entry")).toBe(0);
    library.cuOccupancyMaxActiveBlocksPerMultiprocessor(i32, 0x40, 384, 196_672);
    expect(i32[0]).toBe(1);
  });

  it("share the driver's memory without a copy", () => {
    library.cuMemHostAlloc(u64, 65536, 0);
    const address = Number(u64[0]);
    const bytes = new Uint8Array(library.view(address, 65536));
    bytes[3] = 42;
    expect(library.cuMemcpyHtoDAsync(0x7f4200000000, address, 65536, 0)).toBe(0);
    library.cuMemcpyDtoHAsync(address + 100, 0, 4, 0);
    expect([...bytes.subarray(99, 105)]).toEqual([0, 7, 7, 7, 7, 0]);
    const own = new Uint8Array(4);
    library.cuMemcpyDtoH(own.subarray(1), 0, 2);
    expect([...own]).toEqual([0, 9, 9, 0]);
    expect(library.cuMemFreeHost(address)).toBe(0);
  });

  it("give native code blocks of any alignment", () => {
    for (const alignment of [8, 64, 1024]) {
      const block = library.hostBlock(100, alignment);
      expect(block.address % alignment).toBe(0);
      expect(block.bytes.length).toBe(100);
    }
    const map = library.hostBlock(128, 64);
    const status = library.cuTensorMapEncodeTiled!(
      map.address,
      6,
      2,
      0x7f4200000000,
      BigUint64Array.of(1n, 77n),
      BigUint64Array.of(512n),
      Uint32Array.of(64, 32),
      Uint32Array.of(1, 1),
      0,
      3,
      2,
      0,
    );
    expect(status).toBe(0);
    expect(map.bytes).toEqual(new Uint8Array(128).fill(5));
  });

  it("pass options and their values to the compiler", () => {
    const log = library.hostBlock(64, 8);
    const image = new TextEncoder().encode("some text\0");
    const values = BigUint64Array.of(BigInt(log.address), 64n);
    expect(library.cuModuleLoadDataEx(u64, image, 2, Int32Array.of(5, 6), values)).toBe(218);
    expect(new TextDecoder().decode(log.bytes.subarray(0, 10))).toBe("some text\0");
  });

  it("launch", () => {
    const block = library.hostBlock(16, 64);
    const view = new DataView(block.bytes.buffer, block.bytes.byteOffset);
    view.setBigUint64(0, BigInt(block.address + 8), true);
    view.setInt32(8, 99, true);
    expect(
      library.cuLaunchKernel(0x40, 2 ** 31 - 1, 2, 3, 4, 5, 6, 7, 0x7fff00000010, block.address, 0),
    ).toBe(0);
  });
});
