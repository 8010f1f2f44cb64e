/** @file libcublasLt's entry points, through koffi. Handles and addresses are numbers; see the driver's library. */
import koffi from "koffi";

type Status = number;
type Address = number;

/** The part of libcublasLt that a matrix product needs, as it is in C. */
export interface CublasLtLibrary {
  readonly file: string;
  cublasLtGetVersion(): number;
  cublasLtCreate(handle: BigUint64Array): Status;
  cublasLtDestroy(handle: Address): Status;
  cublasLtMatmulDescCreate(description: BigUint64Array, computeType: number, scaleType: number): Status;
  cublasLtMatmulDescDestroy(description: Address): Status;
  cublasLtMatmulDescSetAttribute(
    description: Address,
    attribute: number,
    value: ArrayBufferView,
    bytes: number,
  ): Status;
  cublasLtMatrixLayoutCreate(
    layout: BigUint64Array,
    type: number,
    rows: number,
    columns: number,
    leading: number,
  ): Status;
  cublasLtMatrixLayoutDestroy(layout: Address): Status;
  cublasLtMatrixLayoutSetAttribute(
    layout: Address,
    attribute: number,
    value: ArrayBufferView,
    bytes: number,
  ): Status;
  cublasLtMatmulPreferenceCreate(preference: BigUint64Array): Status;
  cublasLtMatmulPreferenceDestroy(preference: Address): Status;
  cublasLtMatmulPreferenceSetAttribute(
    preference: Address,
    attribute: number,
    value: ArrayBufferView,
    bytes: number,
  ): Status;
  cublasLtMatmulAlgoGetHeuristic(
    handle: Address,
    description: Address,
    a: Address,
    b: Address,
    c: Address,
    d: Address,
    preference: Address,
    wanted: number,
    results: Address,
    found: Int32Array,
  ): Status;
  cublasLtMatmul(
    handle: Address,
    description: Address,
    alpha: Address,
    a: Address,
    aLayout: Address,
    b: Address,
    bLayout: Address,
    beta: Address,
    c: Address,
    cLayout: Address,
    d: Address,
    dLayout: Address,
    algorithm: Address,
    workspace: Address,
    workspaceBytes: number,
    stream: Address,
  ): Status;
}

const prototypes = [
  "size_t cublasLtGetVersion()",
  "int cublasLtCreate(void *handle)",
  "int cublasLtDestroy(uint64_t handle)",
  "int cublasLtMatmulDescCreate(void *description, int computeType, int scaleType)",
  "int cublasLtMatmulDescDestroy(uint64_t description)",
  "int cublasLtMatmulDescSetAttribute(uint64_t description, int attribute, void *value, size_t bytes)",
  "int cublasLtMatrixLayoutCreate(void *layout, int type, uint64_t rows, uint64_t columns, int64_t leading)",
  "int cublasLtMatrixLayoutDestroy(uint64_t layout)",
  "int cublasLtMatrixLayoutSetAttribute(uint64_t layout, int attribute, void *value, size_t bytes)",
  "int cublasLtMatmulPreferenceCreate(void *preference)",
  "int cublasLtMatmulPreferenceDestroy(uint64_t preference)",
  "int cublasLtMatmulPreferenceSetAttribute(uint64_t preference, int attribute, void *value, size_t bytes)",
  "int cublasLtMatmulAlgoGetHeuristic(uint64_t handle, uint64_t description, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t preference, int wanted, uint64_t results, void *found)",
  "int cublasLtMatmul(uint64_t handle, uint64_t description, uint64_t alpha, uint64_t a, uint64_t aLayout, uint64_t b, uint64_t bLayout, uint64_t beta, uint64_t c, uint64_t cLayout, uint64_t d, uint64_t dLayout, uint64_t algorithm, uint64_t workspace, size_t workspaceBytes, uint64_t stream)",
] as const;

const files = ["13", "12"].flatMap((version) => [
  `libcublasLt.so.${version}`,
  `/usr/local/cuda/lib64/libcublasLt.so.${version}`,
]);

/** The newest libcublasLt found. @throws Error when there is none */
export function loadCublasLt(): CublasLtLibrary {
  const failures: string[] = [];
  for (const file of [...files, "cublasLt64_13.dll", "cublasLt64_12.dll"]) {
    try {
      const library = koffi.load(file);
      const bound = prototypes.map(
        (prototype) => [/(\w+)\(/.exec(prototype)![1]!, library.func(prototype)] as const,
      );
      // The prototypes above are what makes this assertion true.
      return { file, ...Object.fromEntries(bound) } as unknown as CublasLtLibrary;
    } catch (error) {
      failures.push(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(`cuBLASLt cannot be loaded. ${failures.join("; ")}`);
}
