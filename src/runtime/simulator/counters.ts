/** @file What profilers of GPUs count. */

/** Instructions by class, one per lane. */
export interface InstructionCounts {
  arithmetic: number;
  memory: number;
  control: number;
  matrix: number;
  synchronisation: number;
  conversion: number;
  other: number;
}

/** Counts of the blocks that were profiled. */
export class Counters {
  /** 32-byte sectors of device memory, per subgroup instruction. */
  globalLoadSectors = 0;
  globalStoreSectors = 0;
  /** Distinct 128-byte lines per subgroup instruction. */
  globalTransactions = 0;
  /** Passes of 32 banks of 4 bytes that shared accesses need, and how many of them are due to conflicts. */
  sharedWavefronts = 0;
  sharedBankConflicts = 0;
  barriers = 0;
  shuffles = 0;
  /** Matrix operations of a subgroup (a warpgroup's count once), by kind: "mma.m16n8k16.f16.f32". */
  readonly matrix: Record<string, number> = {};
  readonly instructions: InstructionCounts = {
    arithmetic: 0,
    memory: 0,
    control: 0,
    matrix: 0,
    synchronisation: 0,
    conversion: 0,
    other: 0,
  };
  /** Blocks counted. */
  blocks = 0;

  addMatrix(kind: string): void {
    this.matrix[kind] = (this.matrix[kind] ?? 0) + 1;
  }

  /** A bulk copy of whole sectors. */
  addGlobal(bytes: number, store: boolean): void {
    const sectors = Math.ceil(bytes / 32);
    if (store) this.globalStoreSectors += sectors;
    else this.globalLoadSectors += sectors;
    this.globalTransactions += Math.ceil(bytes / 128);
  }

  /** One instruction's addresses in device memory. */
  addGlobalAccess(addresses: readonly number[], bytes: number, store: boolean): void {
    const sectors = new Set<number>();
    const lines = new Set<number>();
    for (const address of addresses) {
      for (let byte = address; byte < address + bytes; byte += 32) {
        sectors.add(Math.floor(byte / 32));
        lines.add(Math.floor(byte / 128));
      }
      sectors.add(Math.floor((address + bytes - 1) / 32));
      lines.add(Math.floor((address + bytes - 1) / 128));
    }
    if (store) this.globalStoreSectors += sectors.size;
    else this.globalLoadSectors += sectors.size;
    this.globalTransactions += lines.size;
  }

  /** One instruction's addresses in shared memory: wide accesses go in parts of 128 bytes. */
  addSharedAccess(addresses: readonly number[], bytes: number): void {
    const perPass = Math.max(1, Math.min(32, Math.floor(128 / Math.max(4, bytes))));
    for (let first = 0; first < addresses.length; first += perPass) {
      const banks = new Map<number, Set<number>>();
      for (const address of addresses.slice(first, first + perPass)) {
        for (let word = address >> 2; word <= (address + bytes - 1) >> 2; word++) {
          let words = banks.get(word & 31);
          if (words === undefined) {
            words = new Set();
            banks.set(word & 31, words);
          }
          words.add(word);
        }
      }
      let passes = 1;
      for (const words of banks.values()) passes = Math.max(passes, words.size);
      this.sharedWavefronts += passes;
      this.sharedBankConflicts += passes - 1;
    }
  }
}

/** Accesses of one place: by how often lanes came there, their addresses. */
export interface CountedPlace {
  readonly kind: "load" | "store" | "shared";
  readonly bytes: number;
  readonly visits: Int32Array;
  readonly instructions: number[][];
}

export type RegionTrace = Map<number, CountedPlace>;
