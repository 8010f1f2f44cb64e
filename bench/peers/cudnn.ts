/** @file cuDNN as a peer, in the same process and on the same stream: forward convolutions of NHWC images in f16, sums in f32. */
import type { BackendBuffer } from "../../src/runtime/backend.ts";
import type { Address, CudaBackend } from "../../src/runtime/cuda/index.ts";
import { type CudnnLibrary, loadCudnn } from "./cudnn-library.ts";

/** cudnnTensorFormat_t, cudnnDataType_t, cudnnConvolutionMode_t and cudnnMathType_t, as far as they are used. */
const nhwc = 1;
const half = 2;
const single = 0;
const crossCorrelation = 1;
const tensorOperations = 1;

/** cudnnConvolutionFwdAlgoPerf_t. */
const resultBytes = 48;
const resultFields = { algorithm: 0, status: 4, milliseconds: 8, workspace: 16, math: 28 } as const;
const mostAlgorithms = 8;

/** A convolution as cuDNN's legacy interface takes it; one number for both dimensions. */
export interface CudnnConvolution {
  readonly images: readonly [n: number, h: number, w: number, c: number];
  readonly filters: readonly [outputs: number, h: number, w: number, c: number];
  readonly padding: number;
  readonly stride: number;
}

/** Device memory of a convolution. */
export interface CudnnBuffers {
  readonly images: BackendBuffer;
  readonly filters: BackendBuffer;
  readonly result: BackendBuffer;
}

/** A convolution with its algorithm chosen. */
export interface CudnnPlan {
  readonly note: string;
  enqueue(): void;
  dispose(): void;
}

/** Chooses the algorithm that cuDNN itself finds the fastest, by its own timing. @throws Error where it refuses */
export function planCudnn(
  backend: CudaBackend,
  { images, filters, padding, stride }: CudnnConvolution,
  buffers: CudnnBuffers,
  library: CudnnLibrary = loadCudnn(),
): CudnnPlan {
  backend.makeCurrent();
  const release: (() => void)[] = [];
  const dispose = (): void => {
    for (const one of release.splice(0).reverse()) one();
  };
  const check = (status: number, what: string): void => {
    if (status !== 0) throw new Error(`${what}: ${library.cudnnGetErrorString(status)}`);
  };
  const create = (
    what: string,
    make: (out: BigUint64Array) => number,
    destroy: (made: Address) => number,
  ): Address => {
    const out = new BigUint64Array(1);
    check(make(out), what);
    const made = Number(out[0]);
    release.push(() => destroy(made));
    return made;
  };
  try {
    const handle = create(
      "cudnnCreate",
      (out) => library.cudnnCreate(out),
      (made) => library.cudnnDestroy(made),
    );
    check(library.cudnnSetStream(handle, backend.stream), "cudnnSetStream");
    const tensor = (n: number, h: number, w: number, c: number): Address => {
      const made = create(
        "cudnnCreateTensorDescriptor",
        (out) => library.cudnnCreateTensorDescriptor(out),
        (one) => library.cudnnDestroyTensorDescriptor(one),
      );
      check(library.cudnnSetTensor4dDescriptor(made, nhwc, half, n, c, h, w), "cudnnSetTensor4dDescriptor");
      return made;
    };
    const [n, h, w] = images;
    const [outputs, filterH, filterW, channels] = filters;
    const places = (extent: number, filter: number): number =>
      Math.floor((extent + 2 * padding - filter) / stride) + 1;
    const x = tensor(...images);
    const y = tensor(n, places(h, filterH), places(w, filterW), outputs);
    const weights = create(
      "cudnnCreateFilterDescriptor",
      (out) => library.cudnnCreateFilterDescriptor(out),
      (one) => library.cudnnDestroyFilterDescriptor(one),
    );
    check(
      library.cudnnSetFilter4dDescriptor(weights, half, nhwc, outputs, channels, filterH, filterW),
      "cudnnSetFilter4dDescriptor",
    );
    const convolution = create(
      "cudnnCreateConvolutionDescriptor",
      (out) => library.cudnnCreateConvolutionDescriptor(out),
      (one) => library.cudnnDestroyConvolutionDescriptor(one),
    );
    check(
      library.cudnnSetConvolution2dDescriptor(
        convolution,
        padding,
        padding,
        stride,
        stride,
        1,
        1,
        crossCorrelation,
        single,
      ),
      "cudnnSetConvolution2dDescriptor",
    );
    check(library.cudnnSetConvolutionMathType(convolution, tensorOperations), "cudnnSetConvolutionMathType");
    const found = new Int32Array(1);
    const results = new Uint8Array(mostAlgorithms * resultBytes);
    check(
      library.cudnnFindConvolutionForwardAlgorithm(
        handle,
        x,
        weights,
        convolution,
        y,
        mostAlgorithms,
        found,
        results,
      ),
      "cudnnFindConvolutionForwardAlgorithm",
    );
    const view = new DataView(results.buffer);
    // They come fastest first; those that failed have a status of their own.
    const best = Array.from({ length: found[0]! }, (_, i) => i * resultBytes).find(
      (at) => view.getInt32(at + resultFields.status, true) === 0,
    );
    if (best === undefined) throw new Error("cuDNN has no algorithm for this convolution");
    const algorithm = view.getInt32(best + resultFields.algorithm, true);
    const workspaceBytes = Number(view.getBigUint64(best + resultFields.workspace, true));
    check(
      library.cudnnSetConvolutionMathType(convolution, view.getInt32(best + resultFields.math, true)),
      "cudnnSetConvolutionMathType",
    );
    const workspace = workspaceBytes === 0 ? undefined : backend.allocate(workspaceBytes);
    if (workspace !== undefined) release.push(() => backend.free(workspace));
    const address = (buffer: BackendBuffer): Address => backend.addressOf(buffer);
    const [alpha, beta] = [Float32Array.of(1), Float32Array.of(0)];
    return {
      note: `${library.cudnnGetVersion()}, algorithm ${algorithm}, workspace ${workspaceBytes} bytes`,
      enqueue: () =>
        check(
          library.cudnnConvolutionForward(
            handle,
            alpha,
            x,
            address(buffers.images),
            weights,
            address(buffers.filters),
            convolution,
            algorithm,
            workspace === undefined ? 0 : address(workspace),
            workspaceBytes,
            beta,
            y,
            address(buffers.result),
          ),
          "cudnnConvolutionForward",
        ),
      dispose,
    };
  } catch (error) {
    dispose();
    throw error;
  }
}
