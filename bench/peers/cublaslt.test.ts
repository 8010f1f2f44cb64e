import { afterEach, describe, expect, it } from "vitest";
import { FakeDriver } from "../../src/runtime/cuda/fake-driver-for-tests.ts";
import { CudaBackend, createCudaBackend } from "../../src/runtime/cuda/index.ts";
import { CublasLt, type MatmulOptions, type Matrix } from "./cublaslt.ts";
import type { CublasLtLibrary } from "./cublaslt-library.ts";

type Numbers = readonly (number | bigint)[];
const numbers = (view: ArrayBufferView): Numbers => Array.from(view as unknown as ArrayLike<number | bigint>);

/** Writes down what is asked of it, and proposes as many algorithms as wanted; those in `refused` do not run. */
class FakeCublasLt implements CublasLtLibrary {
  readonly file = "fake";
  readonly description: Record<number, Numbers> = {};
  readonly layouts: Numbers[] = [];
  readonly layoutAttributes: (readonly [number, Numbers])[] = [];
  readonly preference: Record<number, Numbers> = {};
  readonly types: Numbers[] = [];
  readonly calls: { readonly algorithm: number; readonly operands: Numbers; readonly scalars: Uint8Array }[] =
    [];
  live = 0;
  refused: readonly number[] = [];
  #results = 0;
  readonly #driver: FakeDriver;

  constructor(driver: FakeDriver) {
    this.#driver = driver;
  }

  #make(out: BigUint64Array, handle: number): number {
    out[0] = BigInt(handle);
    this.live++;
    return 0;
  }

  #end(): number {
    this.live--;
    return 0;
  }

  cublasLtGetVersion = (): number => 130_100;
  cublasLtCreate = (out: BigUint64Array): number => this.#make(out, 1);
  cublasLtDestroy = (): number => this.#end();
  cublasLtMatmulDescCreate = (out: BigUint64Array, compute: number, scale: number): number => {
    this.types.push([compute, scale]);
    return this.#make(out, 2);
  };
  cublasLtMatmulDescDestroy = (): number => this.#end();
  cublasLtMatmulDescSetAttribute = (_: number, attribute: number, value: ArrayBufferView): number => {
    this.description[attribute] = numbers(value);
    return 0;
  };
  cublasLtMatrixLayoutCreate = (out: BigUint64Array, ...layout: number[]): number => {
    this.layouts.push(layout);
    return this.#make(out, 10 + this.layouts.length);
  };
  cublasLtMatrixLayoutDestroy = (): number => this.#end();
  cublasLtMatrixLayoutSetAttribute = (_: number, attribute: number, value: ArrayBufferView): number => {
    this.layoutAttributes.push([attribute, numbers(value)]);
    return 0;
  };
  cublasLtMatmulPreferenceCreate = (out: BigUint64Array): number => this.#make(out, 3);
  cublasLtMatmulPreferenceDestroy = (): number => this.#end();
  cublasLtMatmulPreferenceSetAttribute = (_: number, attribute: number, value: ArrayBufferView): number => {
    this.preference[attribute] = numbers(value);
    return 0;
  };
  cublasLtMatmulAlgoGetHeuristic: CublasLtLibrary["cublasLtMatmulAlgoGetHeuristic"] = (...args) => {
    const [wanted, results, found] = [args[7], args[8], args[9]];
    this.#results = results;
    new DataView(this.#driver.hostAt(results, 96 * wanted).buffer).setInt32(96 + 72, 15, true);
    found[0] = wanted;
    return 0;
  };
  cublasLtMatmul: CublasLtLibrary["cublasLtMatmul"] = (...args) => {
    const algorithm = (args[12] - this.#results) / 96;
    if (this.refused.includes(algorithm)) return 15;
    this.calls.push({
      algorithm,
      operands: [args[3], args[5], args[8], args[10]],
      scalars: this.#driver.hostAt(args[2], 16).slice(),
    });
    // The third proposal is the fast one.
    const work = algorithm === 2 ? 1 : 5;
    for (let i = 0; i < work; i++) this.#driver.cuMemsetD8Async(args[10], 0, 1);
    return 0;
  };
}

const opened: CudaBackend[] = [];
afterEach(() => {
  for (const backend of opened.splice(0)) backend.dispose();
});

async function open(): Promise<{
  backend: CudaBackend;
  library: FakeCublasLt;
  cublas: CublasLt;
  matrix: (type: Matrix["type"], leading: number, transposed?: boolean) => Matrix;
}> {
  const driver = new FakeDriver({ stepsPerQuery: 1000 });
  const backend = await createCudaBackend({ library: driver });
  if (!(backend instanceof CudaBackend)) throw new Error(backend.reason);
  opened.push(backend);
  const library = new FakeCublasLt(driver);
  const matrix = (type: Matrix["type"], leading: number, transposed = false): Matrix => ({
    type,
    buffer: backend.allocate(65536),
    leading,
    transposed,
  });
  return { backend, library, cublas: new CublasLt(backend, library), matrix };
}

describe("a row-major product", () => {
  const size = { m: 30, n: 40, k: 50 };

  it("is its transpose in columns: A and B change places, M and N too", async () => {
    const { backend, library, cublas, matrix } = await open();
    const [a, b, d] = [matrix("f16", 56), matrix("f16", 48), matrix("f32", 44)];
    const plan = await cublas.matmul({ ...size, a, b, d, compute: "f32", alpha: 2, candidates: 4 });
    expect(library.layouts).toEqual([
      [2, 40, 50, 48],
      [2, 50, 30, 56],
      [0, 40, 30, 44],
      [0, 40, 30, 44],
    ]);
    expect([library.description[3], library.description[4], library.description[7]]).toEqual([[0], [0], [1]]);
    expect(library.types).toEqual([[68, 0]]);
    plan.enqueue();
    const call = library.calls.at(-1)!;
    expect(call.operands).toEqual([b, a, d, d].map(({ buffer }) => backend.addressOf(buffer)));
    expect(new Float32Array(call.scalars.buffer)).toEqual(Float32Array.of(2, 0, 0, 0));
  });

  it("says which operand is stored as its transpose", async () => {
    const { library, cublas, matrix } = await open();
    const options: MatmulOptions = {
      ...size,
      a: matrix("bf16", 32, true),
      b: matrix("bf16", 56, true),
      d: matrix("bf16", 40),
      compute: "f32",
      candidates: 3,
    };
    await cublas.matmul(options);
    expect(library.layouts.slice(0, 2)).toEqual([
      [14, 50, 40, 56],
      [14, 30, 50, 32],
    ]);
    expect([library.description[3], library.description[4]]).toEqual([[1], [1]]);
  });

  it("takes the fastest of the algorithms that run", async () => {
    const { library, cublas, matrix } = await open();
    library.refused = [0];
    const plan = await cublas.matmul({
      ...size,
      a: matrix("f16", 50),
      b: matrix("f16", 40),
      d: matrix("f16", 40),
      compute: "f32",
      candidates: 4,
    });
    expect(plan.note).toBe("algorithm 3 of 3 proposed, workspace 0 bytes");
    plan.enqueue();
    expect(library.calls.at(-1)!.algorithm).toBe(2);
    // The fake marks the second proposal as invalid.
    expect(library.calls.some(({ algorithm }) => algorithm === 1 || algorithm === 0)).toBe(false);
    plan.dispose();
    cublas.dispose();
    expect(library.live).toBe(0);
  });

  it("has epilogues, scale types, batches and what operands are aligned to", async () => {
    const { backend, library, cublas, matrix } = await open();
    const bias = backend.allocate(80);
    await cublas.matmul({
      ...size,
      a: { ...matrix("i8", 64), byteOffset: 16, batchStride: 2000 },
      b: { ...matrix("i8", 64, true), batchStride: 3000 },
      d: { ...matrix("i32", 40), batchStride: 1200 },
      compute: "i32",
      epilogue: "bias relu",
      bias,
      batch: 3,
      alpha: 1,
      beta: 1,
      candidates: 3,
    });
    expect(library.types).toEqual([[72, 10]]);
    expect(library.description[7]).toEqual([6]);
    expect(library.description[8]).toEqual([BigInt(backend.addressOf(bias))]);
    expect(library.layoutAttributes.slice(0, 4)).toEqual([
      [5, [3]],
      [6, [3000n]],
      [5, [3]],
      [6, [2000n]],
    ]);
    expect(library.preference[1]).toEqual([BigInt(64 << 20)]);
    expect(library.preference[5]).toEqual([256]);
    expect(library.preference[6]).toEqual([16]);
    expect(new Int32Array(library.calls[0]!.scalars.buffer)).toEqual(Int32Array.of(1, 0, 1, 0));
  });

  it("without an algorithm is an error", async () => {
    const { library, cublas, matrix } = await open();
    library.refused = [0, 2];
    const options: MatmulOptions = {
      ...size,
      a: matrix("f64", 50),
      b: matrix("f64", 40),
      d: matrix("f64", 40),
      compute: "f64",
      candidates: 3,
    };
    await expect(cublas.matmul(options)).rejects.toThrow("no algorithm for this product");
  });
});
