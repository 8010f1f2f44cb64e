/** @file Graphs: work captured from the stream once, which one call enqueues again. */
import { DisposedError, UnsupportedError } from "../../errors.ts";
import type { CapturedWork } from "../backend.ts";
import { graphDisposed, notCaptured } from "../recorder.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";
import type { CudaBuffer } from "./memory.ts";
import { status } from "./status.ts";

/** Calls on other streams and threads stay allowed: what cannot be captured is refused here, in our own words. */
const captureRelaxed = 2;

/** A kernel and its grid. */
type CapturedLaunch = readonly [kernel: string, x: number, y: number, z: number];

/** Captures the stream's work. */
export class GraphCapture {
  readonly #context: DriverContext;
  /** Memory that the work captured so far uses; undefined when nothing is captured. */
  #buffers: Set<CudaBuffer> | undefined;
  #launches: CapturedLaunch[] = [];

  constructor(context: DriverContext) {
    this.#context = context;
  }

  /** Notes memory that captured work will use each time it runs. */
  uses(...buffers: readonly CudaBuffer[]): void {
    if (this.#buffers === undefined) return;
    for (const buffer of buffers) this.#buffers.add(buffer);
  }

  /** @throws ArgumentError while work is captured */
  refuse(what: string): void {
    if (this.#buffers !== undefined) throw notCaptured(what);
  }

  get active(): boolean {
    return this.#buffers !== undefined;
  }

  /** Notes a captured launch: it will have to be named if the graph fails. */
  launched(...launch: CapturedLaunch): void {
    this.#launches.push(launch);
  }

  /** Runs `enqueue`, whose work goes into a graph. The context must be current. @throws UnsupportedError, DeviceError */
  capture(enqueue: () => void): CapturedWork {
    this.refuse("capture()");
    const { library, stream } = this.#context;
    if (library.cuStreamBeginCapture === undefined || library.cuGraphInstantiateWithFlags === undefined) {
      throw new UnsupportedError(
        "graphs need an NVIDIA driver for CUDA 11.4 or newer; launch the work as it is",
      );
    }
    this.#context.check(library.cuStreamBeginCapture(stream, captureRelaxed), "Starting to capture a graph");
    const buffers = new Set<CudaBuffer>();
    this.#buffers = buffers;
    this.#launches = [];
    const out = new BigUint64Array(1);
    try {
      enqueue();
    } catch (error) {
      this.#context.enter();
      if (library.cuStreamEndCapture!(stream, out) === status.success)
        library.cuGraphDestroy!(Number(out[0]));
      throw error;
    } finally {
      this.#buffers = undefined;
    }
    this.#context.enter();
    this.#context.check(library.cuStreamEndCapture!(stream, out), "Capturing a graph");
    const graph = Number(out[0]);
    const made = library.cuGraphInstantiateWithFlags(out, graph, 0);
    library.cuGraphDestroy!(graph);
    this.#context.check(made, "Making a graph ready");
    return new CudaGraph(this.#context, this, Number(out[0]), buffers, this.#launches);
  }
}

/** An executable graph. It holds the memory that its work uses. */
class CudaGraph implements CapturedWork {
  readonly #context: DriverContext;
  readonly #capture: GraphCapture;
  readonly #buffers: ReadonlySet<CudaBuffer>;
  readonly #launches: readonly CapturedLaunch[];
  #handle: Address | undefined;

  constructor(
    context: DriverContext,
    capture: GraphCapture,
    handle: Address,
    buffers: ReadonlySet<CudaBuffer>,
    launches: readonly CapturedLaunch[],
  ) {
    this.#context = context;
    this.#capture = capture;
    this.#handle = handle;
    this.#buffers = buffers;
    this.#launches = launches;
  }

  launch(): void {
    if (this.#handle === undefined) throw graphDisposed();
    this.#capture.refuse("launching a graph");
    for (const buffer of this.#buffers) {
      if (buffer.freed) throw new DisposedError("this graph uses an array that was disposed");
    }
    this.#context.enter();
    const { library, stream, history } = this.#context;
    this.#context.check(library.cuGraphLaunch!(this.#handle, stream), "Launching a graph");
    for (const launch of this.#launches) history.record(...launch);
  }

  /** A graph in flight runs to its end. */
  dispose(): void {
    if (this.#handle === undefined) return;
    if (!this.#context.disposed && this.#context.fault === undefined) {
      this.#context.enter();
      this.#context.library.cuGraphExecDestroy!(this.#handle);
    }
    this.#handle = undefined;
  }
}
