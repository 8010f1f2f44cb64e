/**
 * @file Folded matrices: arrays of any rank whose dimensions, the *modes*, are folded into rows and columns.
 *
 * Row and column numbers are taken apart by run-time extents, fastest mode first, and each mode's number counts its
 * stride (GETT: Springer and Bientinesi, ACM TOMS 44(3), 2018; Matthews' scatter vectors without the vectors). Divisions
 * are multiplications by what the host computed. Only the numbers of modes are compiled in.
 */
import { byteSize, type Index, index, type U32, u32, type Value } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { divisionArguments, divisionLength, quotientAndRest } from "../division.ts";
import { commonAlignment, type ExtraArgument, type ExtraValue } from "../extras.ts";
import type { MatrixSource, SourceLines } from "../source.ts";
import { denseLayout, firstElement, interned, type Layout, layoutAt } from "./layout.ts";

/** A mode: how many elements, how far apart. */
export interface FoldedMode {
  readonly extent: number;
  readonly stride: number;
}

/** Numbers of modes along rows and columns, and whether the fastest of the major direction has stride 1. */
interface Folding {
  readonly rows: number;
  readonly columns: number;
  readonly major: "row" | "column";
  readonly unit: boolean;
}

/** Extras of one direction: for every mode but the slowest its division, for every one its stride unless that is 1. */
export function directionExtras(modes: readonly FoldedMode[], unit: boolean): readonly ExtraArgument[] {
  return modes.flatMap(({ extent, stride }, i): readonly ExtraArgument[] => [
    ...(i < modes.length - 1 ? divisionArguments(extent) : []),
    ...(i === 0 && unit ? [] : [{ type: index, value: stride }]),
  ]);
}

/** How many extras {@link directionExtras} gives. */
export function extrasLength(modes: number, unit: boolean): number {
  return (modes - 1) * divisionLength + modes - (unit ? 1 : 0);
}

/** Where a number along one direction begins, from that direction's extras. */
export function directionOffset(
  number: Value<U32>,
  modes: number,
  unit: boolean,
  extras: readonly ExtraValue[],
): Value<Index> {
  let rest = number;
  let at = 0;
  let offset: Value<Index> | undefined;
  for (let i = 0; i < modes; i++) {
    let own = rest;
    if (i < modes - 1) {
      const division = quotientAndRest(rest, extras.slice(at, at + divisionLength));
      at += divisionLength;
      own = division.rest;
      rest = division.quotient;
    }
    const wide = own.to(index);
    const moved = i === 0 && unit ? wide : wide.mul(extras[at++] as Value<Index>);
    offset = offset === undefined ? moved : offset.add(moved);
  }
  return offset as Value<Index>;
}

function foldedLayout(folding: Folding): Layout {
  const { rows, columns, major, unit } = folding;
  const name = `${rows} modes by ${columns}, ${major}-major${unit ? "" : ", no neighbours"}`;
  return interned(name, () => {
    const unitRows = unit && major === "column";
    const unitColumns = unit && major === "row";
    const split = extrasLength(rows, unitRows);
    return layoutAt(
      {
        ...denseLayout(major),
        name,
        facts: { movement: "run", ...(unit ? {} : { widest: 1 }) },
      },
      ({ extras = [] }, tile) => {
        const { row, column } = firstElement(tile);
        const down = directionOffset(row.to(u32), rows, unitRows, extras.slice(0, split));
        const across = directionOffset(column.to(u32), columns, unitColumns, extras.slice(split));
        return down.add(across);
      },
    );
  });
}

/** Bytes to which runs along the major direction are aligned, and within which they stay in one line of its fastest mode. */
export function runAlignment(
  { type, offset }: DeviceArray,
  fastest: FoldedMode,
  others: readonly FoldedMode[],
): number {
  const size = byteSize(type);
  const steps = [offset, ...others.map(({ stride }) => stride)];
  if (others.length > 0) steps.push(fastest.extent);
  return Math.max(size, commonAlignment(steps.map((step) => step * size)));
}

const single: readonly FoldedMode[] = [{ extent: 1, stride: 0 }];

/** Matrices that one launch copies: blocks of its third dimension. */
const mostMatrices = 65_535;
const packedAlignment = 16;

/**
 * The lines of a folded matrix, `across` and `along` them: three modes together, one of which has stride 1 and can be lanes.
 */
function linesOf(
  array: DeviceArray,
  across: readonly FoldedMode[],
  along: readonly FoldedMode[],
): SourceLines | undefined {
  const [line, outer = single[0]!] = across;
  const [element, part = single[0]!] = along;
  if (line === undefined || element === undefined || across.length + along.length > 3) return undefined;
  const made = (
    modes: readonly [FoldedMode, FoldedMode, FoldedMode],
    strides: SourceLines["strides"],
  ): SourceLines | undefined =>
    modes[0].extent > mostMatrices
      ? undefined
      : {
          source: array.strided(
            modes.map(({ extent }) => extent),
            modes.map(({ stride }) => stride),
            array.offset,
          ),
          strides,
        };
  const near = element.stride === 1 || line.stride === 1;
  if (along.length === 2) {
    // Parts of a line begin at whole accesses.
    const whole = (element.extent * byteSize(array.type)) % packedAlignment === 0;
    return near && whole ? made([part, line, element], (leading) => [element.extent, leading, 1]) : undefined;
  }
  if (near) return made([outer, line, element], (leading) => [line.extent * leading, leading, 1]);
  return outer.stride === 1
    ? made([line, outer, element], (leading) => [leading, line.extent * leading, 1])
    : undefined;
}

/** Elements along modes together. */
function extentOf(modes: readonly FoldedMode[]): number {
  return modes.reduce((product, { extent }) => product * extent, 1);
}

/**
 * The matrix whose rows and columns count through modes of `array`, fastest first; strides in elements from the array's
 * first. Where rows and columns are one mode each and one of them has neighbours, it is an ordinary matrix, and given as
 * one. Otherwise an operand of a product that is read and written in place.
 */
export function folded(
  array: DeviceArray,
  rows: readonly FoldedMode[],
  columns: readonly FoldedMode[],
): DeviceArray | MatrixSource {
  const down = rows.length === 0 ? single : rows;
  const across = columns.length === 0 ? single : columns;
  const [row, column] = [down[0], across[0]];
  const shape = [extentOf(down), extentOf(across)] as const;
  const isNeighbour = ({ extent, stride }: FoldedMode): boolean => stride === 1 || extent <= 1;
  if (down.length === 1 && across.length === 1 && (isNeighbour(row) || isNeighbour(column))) {
    return array.strided(shape, [row.stride, column.stride]);
  }
  const unit = column.stride === 1 || row.stride === 1;
  const major = column.stride === 1 || row.stride !== 1 ? "row" : "column";
  const layout = foldedLayout({ rows: down.length, columns: across.length, major, unit });
  const [fastest, others] =
    major === "row" ? [column, [...across.slice(1), ...down]] : [row, [...down.slice(1), ...across]];
  return {
    label: array.label,
    device: array.device,
    type: array.type,
    shape,
    layout,
    array,
    lines: (major) => (major === "row" ? linesOf(array, down, across) : linesOf(array, across, down)),
    leading: 0,
    alignment: unit ? runAlignment(array, fastest, others) : byteSize(array.type),
    extras: [
      ...directionExtras(down, unit && major === "column"),
      ...directionExtras(across, unit && major === "row"),
    ],
    get transposed() {
      return folded(array, columns, rows) as MatrixSource;
    },
  };
}
