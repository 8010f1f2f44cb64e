/** @file What went wrong on the device, told once to whoever waits next, and named by every call after. */
import { DeviceError, DisposedError } from "../../errors.ts";

export class Faults {
  #first: DeviceError | undefined;
  #lost = false;
  #disposed = false;
  /** Validations under way. */
  readonly #pending: Set<Promise<void>> = new Set();

  constructor(
    device: GPUDevice,
    private readonly name: string,
  ) {
    device.lost.then(({ reason, message }) => {
      if (this.#disposed) return;
      this.#lost = true;
      this.note(
        `the device ${name} was lost (${reason}): ${message.trim()}. Its arrays are gone; open a new device and write them again`,
        "lost",
      );
    });
    device.addEventListener?.("uncapturederror", (event) => {
      this.note(`${name} reports: ${(event as GPUUncapturedErrorEvent).error.message}`, "validation");
    });
  }

  note(message: string, status: string): void {
    this.#first ??= new DeviceError(message, status);
  }

  /** Follows an error scope: what it caught is a fault. */
  watch(scope: Promise<GPUError | null>, what: string): void {
    const watching = scope.then(
      (error) => {
        if (error !== null) this.note(`${what}: ${error.message}`, "validation");
        this.#pending.delete(watching);
      },
      () => {
        this.#pending.delete(watching);
      },
    );
    this.#pending.add(watching);
  }

  /** @throws DisposedError, DeviceError on a device that can do no more */
  check(): void {
    if (this.#disposed) throw new DisposedError(`the device ${this.name} was disposed`);
    if (this.#lost) throw this.#again();
  }

  #again(): DeviceError {
    const first = this.#first!;
    return new DeviceError(first.message, first.status, { cause: first });
  }

  /** Waits for validations, then rejects with a fault that nobody was told of. */
  async settle(): Promise<void> {
    await Promise.all(this.#pending);
    const first = this.#first;
    if (first === undefined) return;
    // A lost device stays lost; other work may go well after work that was refused.
    if (!this.#lost) this.#first = undefined;
    throw first;
  }

  dispose(): void {
    this.#disposed = true;
  }
}
