/** @file libcudnn's entry points for forward convolutions, through koffi. Handles and addresses are numbers. */
import koffi from "koffi";

type Status = number;
type Address = number;

/** The part of libcudnn that a convolution needs, as it is in C. */
export interface CudnnLibrary {
  readonly file: string;
  cudnnGetVersion(): number;
  cudnnGetErrorString(status: Status): string;
  cudnnCreate(handle: BigUint64Array): Status;
  cudnnDestroy(handle: Address): Status;
  cudnnSetStream(handle: Address, stream: Address): Status;
  cudnnCreateTensorDescriptor(descriptor: BigUint64Array): Status;
  cudnnDestroyTensorDescriptor(descriptor: Address): Status;
  cudnnSetTensor4dDescriptor(
    descriptor: Address,
    format: number,
    type: number,
    n: number,
    c: number,
    h: number,
    w: number,
  ): Status;
  cudnnCreateFilterDescriptor(descriptor: BigUint64Array): Status;
  cudnnDestroyFilterDescriptor(descriptor: Address): Status;
  cudnnSetFilter4dDescriptor(
    descriptor: Address,
    type: number,
    format: number,
    k: number,
    c: number,
    h: number,
    w: number,
  ): Status;
  cudnnCreateConvolutionDescriptor(descriptor: BigUint64Array): Status;
  cudnnDestroyConvolutionDescriptor(descriptor: Address): Status;
  cudnnSetConvolution2dDescriptor(
    descriptor: Address,
    paddingH: number,
    paddingW: number,
    strideH: number,
    strideW: number,
    dilationH: number,
    dilationW: number,
    mode: number,
    compute: number,
  ): Status;
  cudnnSetConvolutionMathType(descriptor: Address, math: number): Status;
  cudnnFindConvolutionForwardAlgorithm(
    handle: Address,
    images: Address,
    filters: Address,
    convolution: Address,
    result: Address,
    wanted: number,
    found: Int32Array,
    results: Uint8Array,
  ): Status;
  cudnnConvolutionForward(
    handle: Address,
    alpha: Float32Array,
    imagesDescriptor: Address,
    images: Address,
    filtersDescriptor: Address,
    filters: Address,
    convolution: Address,
    algorithm: number,
    workspace: Address,
    workspaceBytes: number,
    beta: Float32Array,
    resultDescriptor: Address,
    result: Address,
  ): Status;
}

const prototypes = [
  "size_t cudnnGetVersion()",
  "const char *cudnnGetErrorString(int status)",
  "int cudnnCreate(void *handle)",
  "int cudnnDestroy(uint64_t handle)",
  "int cudnnSetStream(uint64_t handle, uint64_t stream)",
  "int cudnnCreateTensorDescriptor(void *descriptor)",
  "int cudnnDestroyTensorDescriptor(uint64_t descriptor)",
  "int cudnnSetTensor4dDescriptor(uint64_t descriptor, int format, int type, int n, int c, int h, int w)",
  "int cudnnCreateFilterDescriptor(void *descriptor)",
  "int cudnnDestroyFilterDescriptor(uint64_t descriptor)",
  "int cudnnSetFilter4dDescriptor(uint64_t descriptor, int type, int format, int k, int c, int h, int w)",
  "int cudnnCreateConvolutionDescriptor(void *descriptor)",
  "int cudnnDestroyConvolutionDescriptor(uint64_t descriptor)",
  "int cudnnSetConvolution2dDescriptor(uint64_t descriptor, int paddingH, int paddingW, int strideH, int strideW, int dilationH, int dilationW, int mode, int compute)",
  "int cudnnSetConvolutionMathType(uint64_t descriptor, int math)",
  "int cudnnFindConvolutionForwardAlgorithm(uint64_t handle, uint64_t images, uint64_t filters, uint64_t convolution, uint64_t result, int wanted, void *found, void *results)",
  "int cudnnConvolutionForward(uint64_t handle, void *alpha, uint64_t imagesDescriptor, uint64_t images, uint64_t filtersDescriptor, uint64_t filters, uint64_t convolution, int algorithm, uint64_t workspace, size_t workspaceBytes, void *beta, uint64_t resultDescriptor, uint64_t result)",
] as const;

/** libcudnn: `TILEWRIGHT_CUDNN` names the file; otherwise the loader finds it. @throws Error when there is none */
export function loadCudnn(): CudnnLibrary {
  const { TILEWRIGHT_CUDNN: named } = process.env;
  const failures: string[] = [];
  for (const file of named === undefined ? ["libcudnn.so.9", "cudnn64_9.dll"] : [named]) {
    try {
      const library = koffi.load(file);
      const bound = prototypes.map(
        (prototype) => [/(\w+)\(/.exec(prototype)![1]!, library.func(prototype)] as const,
      );
      // The prototypes above are what makes this assertion true.
      return { file, ...Object.fromEntries(bound) } as unknown as CudnnLibrary;
    } catch (error) {
      failures.push(`${file}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(`cuDNN cannot be loaded; TILEWRIGHT_CUDNN names its file. ${failures.join("; ")}`);
}
