/**
 * @file Matrix fragments: which lane holds which element (PTX ISA, "Matrix fragments for mma"), and how a range of
 * registers holds a lane's elements. Registers are bits: a fragment of f16 may lie in f16, in pairs of f16 or in u32.
 */
import { fromBits, toBits } from "../../types/bits.ts";
import { type ElementType, type StorageType, type TypeName, types } from "../../types/types.ts";
import type { Warp } from "./state.ts";

/** A range of registers as generated text describes it. */
export interface RangePlan {
  readonly element: TypeName;
  readonly bank: "f" | "i" | "b";
  readonly slot: number;
  readonly slots: number;
  /** Number of the range's first register element, and how many there are. */
  readonly first: number;
  readonly elements: number;
}

/** Lanes of a matrix operation. */
export const matrixLanes = 32;

/** Bits of an element in a fragment. */
export function fragmentBits(element: ElementType): number {
  return element.name === "tf32" ? 32 : element.bits;
}

/** Position in a fragment: element number · 32 + lane. */
export type ElementMap = Int32Array;

/** How many elements one 32-bit register holds; f64 has one in 64 bits. */
function perRegister(element: ElementType): number {
  return Math.max(1, 32 / fragmentBits(element));
}

/** A of mma.sync: position of each (row, k), row-major. */
export function mapA(m: number, k: number, element: ElementType): ElementMap {
  const map = new Int32Array(m * k);
  const packed = perRegister(element);
  const rowParts = m / 8;
  const registers = (m * k) / (matrixLanes * packed);
  for (let lane = 0; lane < matrixLanes; lane++) {
    const [group, inGroup] = [lane >> 2, lane & 3];
    for (let register = 0; register < registers; register++) {
      for (let part = 0; part < packed; part++) {
        const row = group + 8 * (register % rowParts);
        const column = inGroup * packed + part + 4 * packed * Math.floor(register / rowParts);
        map[row * k + column] = (register * packed + part) * matrixLanes + lane;
      }
    }
  }
  return map;
}

/** B of mma.sync: position of each (n, k), n-major, so that products run along both operands' rows. */
export function mapB(n: number, k: number, element: ElementType): ElementMap {
  const map = new Int32Array(n * k);
  const packed = perRegister(element);
  const registers = (n * k) / (matrixLanes * packed);
  for (let lane = 0; lane < matrixLanes; lane++) {
    const [group, inGroup] = [lane >> 2, lane & 3];
    for (let register = 0; register < registers; register++) {
      for (let part = 0; part < packed; part++) {
        map[group * k + inGroup * packed + part + 4 * packed * register] =
          (register * packed + part) * matrixLanes + lane;
      }
    }
  }
  return map;
}

/** C and D of mma.sync and of one warp's 16 rows of wgmma: position of each (row, column). */
export function mapAccumulator(m: number, n: number): ElementMap {
  const map = new Int32Array(m * n);
  const rowParts = m / 8;
  const elements = (m * n) / matrixLanes;
  for (let lane = 0; lane < matrixLanes; lane++) {
    const [group, inGroup] = [lane >> 2, lane & 3];
    for (let element = 0; element < elements; element++) {
      const pair = element >> 1;
      const row = group + 8 * (pair % rowParts);
      const column = 8 * Math.floor(pair / rowParts) + 2 * inGroup + (element & 1);
      map[row * n + column] = element * matrixLanes + lane;
    }
  }
  return map;
}

/** The simulator's own, opaque order for wmma: element e in lane e mod 32. */
export function mapOpaque(count: number): ElementMap {
  return Int32Array.from({ length: count }, (_, element) => element);
}

// Fragments in registers ------------------------------------------------------------------------------------------------

/** Whether a register element is a fragment element as it stands. */
function isDirect(range: RangePlan, element: ElementType): boolean {
  if (range.element === element.name) return true;
  return (
    (range.element === "f32" && element.name === "tf32") ||
    (range.element === "tf32" && element.name === "f32")
  );
}

/** Elements that a lane's registers hold. */
export function elementsIn(range: RangePlan, element: ElementType): number {
  if (element.name === "b1") return range.slots;
  return Math.floor((range.slots * fragmentBits(types[range.element])) / fragmentBits(element));
}

/** Copies a fragment out of registers: element e of lane l to `target[e · 32 + l]`. */
export function readFragment(warp: Warp, range: RangePlan, element: ElementType, target: Float64Array): void {
  if (element.name === "b1" || isDirect(range, element)) {
    target.set(warp[range.bank as "f"].subarray(range.slot, range.slot + range.slots * matrixLanes));
    return;
  }
  const words = readWords(warp, range);
  const bits = fragmentBits(element);
  const count = elementsIn(range, element);
  for (let lane = 0; lane < matrixLanes; lane++) {
    for (let number = 0; number < count; number++)
      target[number * matrixLanes + lane] = elementOf(words, number, lane, element, bits);
  }
}

function storage(element: ElementType): StorageType {
  return element.name === "tf32" ? types.f32 : (element as StorageType);
}

function elementOf(
  words: Uint32Array,
  number: number,
  lane: number,
  element: ElementType,
  bits: number,
): number {
  if (bits === 64) {
    const low = BigInt(words[2 * number * matrixLanes + lane]!);
    const high = BigInt(words[(2 * number + 1) * matrixLanes + lane]!);
    return Number(fromBits(storage(element), (high << 32n) | low));
  }
  const bit = number * bits;
  const word = words[(bit >> 5) * matrixLanes + lane]! >>> (bit & 31);
  return Number(fromBits(storage(element), bits === 32 ? word : word & (2 ** bits - 1)));
}

/** Puts a fragment into registers. */
export function writeFragment(
  warp: Warp,
  range: RangePlan,
  element: ElementType,
  source: Float64Array,
): void {
  if (element.name === "b1" || isDirect(range, element)) {
    warp[range.bank as "f"].set(source.subarray(0, range.slots * matrixLanes), range.slot);
    return;
  }
  const bits = fragmentBits(element);
  const count = elementsIn(range, element);
  const words = new Uint32Array(Math.ceil((count * bits) / 32) * matrixLanes);
  for (let lane = 0; lane < matrixLanes; lane++) {
    for (let number = 0; number < count; number++) {
      const value = toBits(storage(element), source[number * matrixLanes + lane]!);
      if (bits === 64) {
        words[2 * number * matrixLanes + lane] = Number(BigInt(value) & 0xffffffffn);
        words[(2 * number + 1) * matrixLanes + lane] = Number(BigInt(value) >> 32n);
      } else {
        const bit = number * bits;
        words[(bit >> 5) * matrixLanes + lane]! |= Number(value) << (bit & 31);
      }
    }
  }
  writeWords(warp, range, words);
}

/** A range's registers as 32-bit words: word w of lane l at `w · 32 + l`. */
export function readWords(warp: Warp, range: RangePlan): Uint32Array {
  const element = types[range.element];
  const bits = fragmentBits(element);
  const words = new Uint32Array(Math.ceil((range.slots * bits) / 32) * matrixLanes);
  const bank = warp[range.bank] as ArrayLike<number | bigint>;
  for (let slot = 0; slot < range.slots; slot++) {
    for (let lane = 0; lane < matrixLanes; lane++) {
      const value = bank[range.slot + slot * matrixLanes + lane]!;
      const raw = toBits(storage(element), value);
      if (bits === 64) {
        words[2 * slot * matrixLanes + lane] = Number(BigInt(raw) & 0xffffffffn);
        words[(2 * slot + 1) * matrixLanes + lane] = Number(BigInt(raw) >> 32n);
      } else {
        const bit = slot * bits;
        words[(bit >> 5) * matrixLanes + lane]! |= Number(raw) << (bit & 31);
      }
    }
  }
  return words;
}

export function writeWords(warp: Warp, range: RangePlan, words: Uint32Array): void {
  const element = types[range.element];
  const bits = fragmentBits(element);
  const bank = warp[range.bank] as (number | bigint)[];
  for (let slot = 0; slot < range.slots; slot++) {
    for (let lane = 0; lane < matrixLanes; lane++) {
      bank[range.slot + slot * matrixLanes + lane] = slotValue(words, slot, lane, element, bits);
    }
  }
}

function slotValue(
  words: Uint32Array,
  slot: number,
  lane: number,
  element: ElementType,
  bits: number,
): number | bigint {
  if (bits === 64) {
    const low = BigInt(words[2 * slot * matrixLanes + lane]!);
    return fromBits(storage(element), (BigInt(words[(2 * slot + 1) * matrixLanes + lane]!) << 32n) | low);
  }
  const bit = slot * bits;
  const word = words[(bit >> 5) * matrixLanes + lane]! >>> (bit & 31);
  return fromBits(storage(element), bits === 32 ? word : word & (2 ** bits - 1));
}

/** Words of packed f16 or bf16 pairs go into their registers by table; others the general way. */
export function writeHalfWords(
  warp: Warp,
  range: RangePlan,
  words: Uint32Array,
  table: Float64Array | undefined,
): void {
  if (table === undefined) {
    writeWords(warp, range, words);
    return;
  }
  const { f } = warp;
  for (let slot = 0; slot < range.slots; slot++) {
    const shift = 16 * (slot & 1);
    const from = (slot >> 1) * matrixLanes;
    const to = range.slot + slot * matrixLanes;
    for (let lane = 0; lane < matrixLanes; lane++)
      f[to + lane] = table[(words[from + lane]! >>> shift) & 0xffff]!;
  }
}
