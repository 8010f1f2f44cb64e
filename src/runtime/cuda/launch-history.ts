/** @file Which launches a device fault can have come from. */

const kept = 8;

/** The launches since the device was last known to be well: the last few by name, the others counted. */
export class LaunchHistory {
  readonly #names: string[] = new Array<string>(kept).fill("");
  readonly #grids: Uint32Array = new Uint32Array(3 * kept);
  #count = 0;
  #settled = 0;

  /** Launches so far. */
  get count(): number {
    return this.#count;
  }

  record(name: string, x: number, y: number, z: number): void {
    const slot = this.#count++ % kept;
    this.#names[slot] = name;
    this.#grids[3 * slot] = x;
    this.#grids[3 * slot + 1] = y;
    this.#grids[3 * slot + 2] = z;
  }

  /** The first `count` launches ended without a fault. */
  settle(count: number): void {
    if (count > this.#settled) this.#settled = count;
  }

  /** The suspects, oldest first, for a message. */
  describe(): string {
    const suspects = this.#count - this.#settled;
    if (suspects === 0) return "no kernel was running";
    const shown = Math.min(suspects, kept);
    const names: string[] = [];
    for (let launch = this.#count - shown; launch < this.#count; launch++) {
      const slot = launch % kept;
      const [x, y, z] = this.#grids.subarray(3 * slot, 3 * slot + 3);
      names.push(`${this.#names[slot]} (grid ${x} x ${y} x ${z})`);
    }
    if (suspects === 1) return `kernel ${names[0]}`;
    const more = suspects > shown ? ` after ${suspects - shown} others` : "";
    return `one of the ${suspects} launches since the device was last seen well: ${names.join(", ")}${more}; CUDA_LAUNCH_BLOCKING=1 in the environment tells which`;
  }
}
