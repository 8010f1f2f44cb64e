/**
 * @file cuBLASLt as a peer, in the same process and on the same stream: D = epilogue(alpha · op(A) · op(B) + beta · C)
 * for row-major matrices.
 *
 * cuBLASLt thinks in columns. A row-major matrix is its transpose in columns, and Dᵀ = op(B)ᵀ · op(A)ᵀ, so A and B change
 * places and so do M and N; the library's bias, one number for each of its rows, is then one for each column of D.
 */
import type { BackendBuffer } from "../../src/runtime/backend.ts";
import type { Address, CudaBackend, HostBlock } from "../../src/runtime/cuda/index.ts";
import { f16ToBits } from "../../src/types/bits.ts";
import { quantile } from "../statistics.ts";
import { type CublasLtLibrary, loadCublasLt } from "./cublaslt-library.ts";

/** cudaDataType. */
const dataTypes = {
  f32: 0,
  f64: 1,
  f16: 2,
  i8: 3,
  "complex f32": 4,
  i32: 10,
  bf16: 14,
  e4m3: 28,
  e5m2: 29,
} as const;

/** cublasComputeType_t and the type of alpha and beta. */
const computeTypes = {
  f16: { code: 64, scale: "f16" },
  f32: { code: 68, scale: "f32" },
  f64: { code: 70, scale: "f64" },
  i32: { code: 72, scale: "i32" },
  tf32: { code: 77, scale: "f32" },
} as const;

/** cublasLtEpilogue_t. */
const epilogues = { none: 1, relu: 2, bias: 4, "bias relu": 6, gelu: 32, "bias gelu": 36 } as const;

const descriptionAttribute = {
  transposeA: 3,
  transposeB: 4,
  epilogue: 7,
  biasPointer: 8,
  fastAccumulation: 25,
} as const;
const layoutAttribute = { batchCount: 5, batchStride: 6 } as const;
const preferenceAttribute = {
  workspaceBytes: 1,
  alignmentA: 5,
  alignmentB: 6,
  alignmentC: 7,
  alignmentD: 8,
} as const;

const statusNames: Readonly<Record<number, string>> = {
  1: "CUBLAS_STATUS_NOT_INITIALIZED",
  3: "CUBLAS_STATUS_ALLOC_FAILED",
  7: "CUBLAS_STATUS_INVALID_VALUE",
  8: "CUBLAS_STATUS_ARCH_MISMATCH",
  13: "CUBLAS_STATUS_EXECUTION_FAILED",
  14: "CUBLAS_STATUS_INTERNAL_ERROR",
  15: "CUBLAS_STATUS_NOT_SUPPORTED",
};

/** cublasLtMatmulHeuristicResult_t. */
const resultBytes = 96;
const resultWorkspace = 64;
const resultState = 72;

const workspaceBytes = 64 << 20;

export type CublasLtType = keyof typeof dataTypes;

/** A row-major matrix in device memory. */
export interface Matrix {
  readonly type: CublasLtType;
  readonly buffer: BackendBuffer;
  readonly byteOffset?: number | undefined;
  /** Elements from one stored row to the next. */
  readonly leading: number;
  /** The matrix is stored as its transpose. */
  readonly transposed?: boolean | undefined;
  /** Elements from one matrix of a batch to the next. */
  readonly batchStride?: number | undefined;
}

/** A matrix product. A is M x K, B is K x N, C and D are M x N, before any transposed storage. */
export interface MatmulOptions {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: Matrix;
  readonly b: Matrix;
  readonly d: Matrix;
  /** D when not given. */
  readonly c?: Matrix | undefined;
  /** In which type products are summed; "tf32" rounds f32 operands. */
  readonly compute: keyof typeof computeTypes;
  readonly alpha?: number | undefined;
  readonly beta?: number | undefined;
  readonly epilogue?: keyof typeof epilogues | undefined;
  /** N numbers of D's type. */
  readonly bias?: BackendBuffer | undefined;
  readonly batch?: number | undefined;
  /** fp8: sums are carried in the tensor core alone, faster and less exact. Default false. */
  readonly fastAccumulation?: boolean | undefined;
  /** Algorithms to time; the fastest is kept. Default 16. */
  readonly candidates?: number | undefined;
}

/** A product with its algorithm chosen. */
export interface MatmulPlan {
  /** Which of how many algorithms won, and its workspace. */
  readonly note: string;
  enqueue(): void;
  dispose(): void;
}

/** cuBLASLt on one device. */
export class CublasLt {
  readonly #library: CublasLtLibrary;
  readonly #backend: CudaBackend;
  readonly #handle: Address;
  readonly #workspace: BackendBuffer;

  /** @throws Error when the library is not there or refuses */
  constructor(backend: CudaBackend, library: CublasLtLibrary = loadCublasLt()) {
    this.#library = library;
    this.#backend = backend;
    backend.makeCurrent();
    const out = new BigUint64Array(1);
    check(library.cublasLtCreate(out), "cublasLtCreate");
    this.#handle = Number(out[0]);
    this.#workspace = backend.allocate(workspaceBytes);
  }

  /** "13.1.0". */
  get version(): string {
    const version = this.#library.cublasLtGetVersion();
    return [Math.floor(version / 10_000), Math.floor(version / 100) % 100, version % 100].join(".");
  }

  /** Finds the fastest algorithm by timing those that the library proposes. Overwrites D. */
  async matmul(options: MatmulOptions): Promise<MatmulPlan> {
    this.#backend.makeCurrent();
    const call = new MatmulCall(this.#library, this.#backend, this.#handle, this.#workspace, options);
    try {
      const candidates = call.candidates(options.candidates ?? 16);
      const best = await this.#fastest(call, candidates);
      return {
        note: `algorithm ${best + 1} of ${candidates.length} proposed, workspace ${call.workspaceOf(best)} bytes`,
        enqueue: () => call.enqueue(best),
        dispose: () => call.dispose(),
      };
    } catch (error) {
      call.dispose();
      throw error;
    }
  }

  dispose(): void {
    this.#backend.free(this.#workspace);
    this.#library.cublasLtDestroy(this.#handle);
  }

  async #fastest(call: MatmulCall, candidates: readonly number[]): Promise<number> {
    let best = -1;
    let bestSeconds = Number.POSITIVE_INFINITY;
    for (const candidate of candidates) {
      const seconds = await this.#timeOf(call, candidate);
      if (seconds !== undefined && seconds < bestSeconds) [best, bestSeconds] = [candidate, seconds];
    }
    if (best < 0) throw new Error("cuBLASLt has no algorithm for this product");
    return best;
  }

  /** Median of five samples of some milliseconds; undefined for an algorithm that is refused after all. */
  async #timeOf(call: MatmulCall, candidate: number): Promise<number | undefined> {
    const times = (repeats: number) => (): void => {
      for (let i = 0; i < repeats; i++) call.enqueue(candidate);
    };
    try {
      await this.#backend.time(times(1));
    } catch (error) {
      if (error instanceof CublasError) return undefined;
      throw error;
    }
    const once = await this.#backend.time(times(1));
    const repeats = Math.max(1, Math.min(100, Math.ceil(3e-3 / Math.max(once, 1e-6))));
    const samples: number[] = [];
    for (let i = 0; i < 5; i++) samples.push((await this.#backend.time(times(repeats))) / repeats);
    return quantile(samples, 0.5);
  }
}

/** A call of cuBLASLt that was refused. */
export class CublasError extends Error {
  override readonly name = "CublasError";
}

function check(status: number, what: string): void {
  if (status !== 0) throw new CublasError(`${what}: ${statusNames[status] ?? `status ${status}`}`);
}

/** Descriptors and host memory of one product. */
class MatmulCall {
  readonly #library: CublasLtLibrary;
  readonly #backend: CudaBackend;
  readonly #handle: Address;
  readonly #workspace: Address;
  readonly #description: Address;
  readonly #layouts: Readonly<Record<"a" | "b" | "c" | "d", Address>>;
  readonly #addresses: Readonly<Record<"a" | "b" | "c" | "d", Address>>;
  /** alpha at 0, beta at 8. */
  readonly #scalars: HostBlock;
  #results: HostBlock;
  readonly #release: (() => void)[] = [];

  constructor(
    library: CublasLtLibrary,
    backend: CudaBackend,
    handle: Address,
    workspace: BackendBuffer,
    options: MatmulOptions,
  ) {
    this.#library = library;
    this.#backend = backend;
    this.#handle = handle;
    this.#workspace = backend.addressOf(workspace);
    const { a, b, d, m, n, k } = options;
    const c = options.c ?? d;
    if (c.transposed === true || d.transposed === true) throw new RangeError("C and D are not transposed");
    const scale = scaleType(options);
    this.#description = this.#describe(options, scale);
    // What the library calls A is B's transpose, and the other way round.
    this.#layouts = {
      a: this.#layout(b, b.transposed === true ? k : n, b.transposed === true ? n : k, options.batch),
      b: this.#layout(a, a.transposed === true ? m : k, a.transposed === true ? k : m, options.batch),
      c: this.#layout(c, n, m, options.batch),
      d: this.#layout(d, n, m, options.batch),
    };
    const address = ({ buffer, byteOffset }: Matrix): Address =>
      backend.addressOf(buffer) + (byteOffset ?? 0);
    this.#addresses = { a: address(b), b: address(a), c: address(c), d: address(d) };
    this.#scalars = backend.hostBlock(16, 8);
    writeScalar(this.#scalars, 0, scale, options.alpha ?? 1);
    writeScalar(this.#scalars, 8, scale, options.beta ?? 0);
    this.#results = backend.hostBlock(resultBytes, 8);
  }

  /** Indices of the algorithms that the library proposes. */
  candidates(wanted: number): readonly number[] {
    const library = this.#library;
    const preference = this.#create("cublasLtMatmulPreferenceCreate", (out) =>
      library.cublasLtMatmulPreferenceCreate(out),
    );
    this.#release.push(() => library.cublasLtMatmulPreferenceDestroy(preference));
    const prefer = (attribute: number, value: BigUint64Array | Uint32Array): void =>
      check(
        library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, value.byteLength),
        "cublasLtMatmulPreferenceSetAttribute",
      );
    prefer(preferenceAttribute.workspaceBytes, BigUint64Array.of(BigInt(workspaceBytes)));
    for (const operand of ["a", "b", "c", "d"] as const) {
      const attribute = preferenceAttribute[`alignment${operand.toUpperCase() as "A" | "B" | "C" | "D"}`];
      prefer(attribute, Uint32Array.of(alignmentOf(this.#addresses[operand])));
    }
    this.#results = this.#backend.hostBlock(wanted * resultBytes, 8);
    const found = new Int32Array(1);
    const { a, b, c, d } = this.#layouts;
    check(
      library.cublasLtMatmulAlgoGetHeuristic(
        this.#handle,
        this.#description,
        a,
        b,
        c,
        d,
        preference,
        wanted,
        this.#results.address,
        found,
      ),
      "cublasLtMatmulAlgoGetHeuristic",
    );
    const view = this.#resultView();
    return Array.from({ length: found[0]! }, (_, i) => i).filter(
      (i) => view.getInt32(i * resultBytes + resultState, true) === 0,
    );
  }

  workspaceOf(candidate: number): number {
    return Number(this.#resultView().getBigUint64(candidate * resultBytes + resultWorkspace, true));
  }

  enqueue(candidate: number): void {
    const { a, b, c, d } = this.#addresses;
    const layouts = this.#layouts;
    check(
      this.#library.cublasLtMatmul(
        this.#handle,
        this.#description,
        this.#scalars.address,
        a,
        layouts.a,
        b,
        layouts.b,
        this.#scalars.address + 8,
        c,
        layouts.c,
        d,
        layouts.d,
        this.#results.address + candidate * resultBytes,
        this.#workspace,
        workspaceBytes,
        this.#backend.stream,
      ),
      "cublasLtMatmul",
    );
  }

  dispose(): void {
    for (const release of this.#release.splice(0).reverse()) release();
  }

  #describe(options: MatmulOptions, scale: ScaleType): Address {
    const library = this.#library;
    const compute = computeTypes[options.compute].code;
    const description = this.#create("cublasLtMatmulDescCreate", (out) =>
      library.cublasLtMatmulDescCreate(out, compute, dataTypes[scale]),
    );
    this.#release.push(() => library.cublasLtMatmulDescDestroy(description));
    const set = (attribute: number, value: Int32Array | Uint32Array | Int8Array | BigUint64Array): void =>
      check(
        library.cublasLtMatmulDescSetAttribute(description, attribute, value, value.byteLength),
        "cublasLtMatmulDescSetAttribute",
      );
    set(descriptionAttribute.transposeA, Int32Array.of(options.b.transposed === true ? 1 : 0));
    set(descriptionAttribute.transposeB, Int32Array.of(options.a.transposed === true ? 1 : 0));
    const epilogue = options.epilogue ?? "none";
    set(descriptionAttribute.epilogue, Uint32Array.of(epilogues[epilogue]));
    if (epilogue.startsWith("bias")) {
      if (options.bias === undefined) throw new RangeError(`the epilogue "${epilogue}" needs a bias`);
      set(descriptionAttribute.biasPointer, BigUint64Array.of(BigInt(this.#backend.addressOf(options.bias))));
    }
    if (options.a.type === "e4m3" || options.a.type === "e5m2") {
      set(descriptionAttribute.fastAccumulation, Int8Array.of(options.fastAccumulation === true ? 1 : 0));
    }
    return description;
  }

  #layout(matrix: Matrix, rows: number, columns: number, batch: number | undefined): Address {
    const library = this.#library;
    const layout = this.#create("cublasLtMatrixLayoutCreate", (out) =>
      library.cublasLtMatrixLayoutCreate(out, dataTypes[matrix.type], rows, columns, matrix.leading),
    );
    this.#release.push(() => library.cublasLtMatrixLayoutDestroy(layout));
    if (batch !== undefined) {
      const set = (attribute: number, value: Int32Array | BigInt64Array): void =>
        check(
          library.cublasLtMatrixLayoutSetAttribute(layout, attribute, value, value.byteLength),
          "cublasLtMatrixLayoutSetAttribute",
        );
      set(layoutAttribute.batchCount, Int32Array.of(batch));
      set(
        layoutAttribute.batchStride,
        BigInt64Array.of(BigInt(matrix.batchStride ?? columns * matrix.leading)),
      );
    }
    return layout;
  }

  #create(what: string, action: (out: BigUint64Array) => number): Address {
    const out = new BigUint64Array(1);
    check(action(out), what);
    return Number(out[0]);
  }

  #resultView(): DataView {
    const { buffer, byteOffset, byteLength } = this.#results.bytes;
    return new DataView(buffer, byteOffset, byteLength);
  }
}

type ScaleType = "f16" | "f32" | "f64" | "i32" | "complex f32";

/** Sums of integers are scaled as integers into i32, as f32 into anything else; complex ones by complex numbers. */
function scaleType({ compute, d }: MatmulOptions): ScaleType {
  if (d.type === "complex f32") return d.type;
  return compute === "i32" && d.type !== "i32" ? "f32" : computeTypes[compute].scale;
}

const scalarWriters: Readonly<Record<ScaleType, (view: DataView, offset: number, value: number) => void>> = {
  f16: (view, offset, value) => view.setUint16(offset, f16ToBits(value), true),
  f32: (view, offset, value) => view.setFloat32(offset, value, true),
  f64: (view, offset, value) => view.setFloat64(offset, value, true),
  i32: (view, offset, value) => view.setInt32(offset, value, true),
  // The imaginary part stays 0.
  "complex f32": (view, offset, value) => view.setFloat32(offset, value, true),
};

function writeScalar({ bytes }: HostBlock, offset: number, type: ScaleType, value: number): void {
  scalarWriters[type](new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset, value);
}

/** The largest power of two, up to 256, that divides an address. */
function alignmentOf(address: Address): number {
  let alignment = 256;
  while (address % alignment !== 0) alignment /= 2;
  return alignment;
}
