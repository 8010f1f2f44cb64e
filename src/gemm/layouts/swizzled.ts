/**
 * @file Swizzled shared layouts: lines are as long as their elements, without padding, and pieces of a line trade places
 * so that the same columns of neighbouring lines lie in different banks.
 *
 * A line is made of pieces of `unit` bytes, as much as one access of a warp takes from each line. Piece p of line l lies
 * where piece p xor f(l) would lie: f(l) = l mod (128 / unit) for lines of 128 bytes and more; of shorter ones, as many as
 * fill 128 bytes share a number.
 */
import { byteSize, type StorageType } from "../../lang/index.ts";
import { type Coordinate, plus, quotient, remainder, times } from "../../tile/coordinate.ts";
import { type Layout, layoutAt, type MatrixPlace, type MatrixTile } from "./layout.ts";

/** Bytes that a warp moves from or to shared memory in one pass over all banks. */
const passBytes = 128;

/** Whether lines of this many bytes can be swizzled in units of `unit` bytes: they fill whole passes, or passes whole lines. */
export function canSwizzle(lineBytes: number, unit: number): boolean {
  const short = lineBytes < passBytes;
  return short ? passBytes % lineBytes === 0 && lineBytes >= 2 * unit : lineBytes % passBytes === 0;
}

/**
 * The lines of `inner`, swizzled. `unit` is a power of two of bytes up to 64; elements are of `type`. Lines must satisfy
 * {@link canSwizzle}, and the array begin at a multiple of 128 bytes. Accesses stay within one unit.
 */
export function swizzled(inner: Layout, type: StorageType, unit: number): Layout {
  const size = byteSize(type);
  const [line, along] = inner.major === "row" ? (["R", "C"] as const) : (["C", "R"] as const);
  const position = (place: MatrixPlace, tile: MatrixTile): Coordinate => {
    const leading = place.leading as number;
    const elements = unit / size;
    const number = lineNumber(tile, line, leading * size, unit);
    // Whole pieces of the offset stay apart: what is left varies with the lane alone.
    const offset = tile.offset[along];
    const start = plus(tile.base[along], offset % elements);
    const piece = plus(quotient(start, elements), Math.floor(offset / elements));
    const lane = plus(
      times(tile.base[line], leading),
      plus(times(crossed(piece, number), elements), remainder(start, elements)),
    );
    return plus(place.origin as Coordinate, plus(lane, tile.offset[line] * leading));
  };
  return layoutAt({ ...inner, name: `${inner.name} swizzled by ${unit} bytes` }, position);
}

/** f of a tile's first line; offsets of whole periods of f do not enter. */
function lineNumber(tile: MatrixTile, line: "R" | "C", lineBytes: number, unit: number): Coordinate {
  const shared = Math.max(1, passBytes / lineBytes);
  const numbers = Math.min(passBytes, lineBytes) / unit;
  const period = shared * numbers;
  return quotient(remainder(plus(tile.base[line], tile.offset[line] % period), period), shared);
}

function crossed(a: Coordinate, b: Coordinate): Coordinate {
  if (typeof a === "number") return typeof b === "number" ? a ^ b : b.xor(a);
  return a.xor(b);
}
