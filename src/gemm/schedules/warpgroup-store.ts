/**
 * @file How a warpgroup's accumulators leave: combined in registers, then either gathered in shared memory and stored as
 * boxes of a tensor map, or stored by each lane in pairs.
 *
 * Boxes are 128 bytes wide and 64 rows high. Two of them take turns, so that one is on its way while the next is filled;
 * their lines are swizzled as tensor maps swizzle, which keeps the lanes' stores off each other's banks. Boxes are clipped
 * at D's edges, but only at whole units of 16 bytes of a line; and steps and C that read arrays of their own must not be
 * asked beyond the edge. Tiles at the edge then leave in pairs.
 */
import {
  type AnyFragment,
  type AnyValue,
  byteSize,
  type Condition,
  Fragment,
  type FragmentLayout,
  type GlobalArray,
  type I32,
  type Index,
  index,
  namedBarrier,
  proxyFence,
  type SharedMemory,
  type StorageType,
  shared,
  storeMatrix,
  subgroup,
  type TensorMap,
  tensorStoreCommit,
  tensorStoreWait,
  thread,
  type Value,
  vector,
  when,
} from "../../lang/index.ts";
import { Collectors, type PartExtents } from "../epilogues/collector.ts";
import { combine } from "../epilogues/combination.ts";
import type { ReductionAxis } from "../epilogues/reduction.ts";
import { stepOperands } from "../epilogues/step.ts";
import type { StepOperand } from "../epilogues/step-operand.ts";
import { columnsPerResult, gateGroup } from "../gate-columns.ts";
import { componentsOf, type GemmKind, scaleTypeOf } from "../kind.ts";
import type { Transforms } from "../transforms.ts";
import { dividesK } from "./work.ts";

/** Rows that one warpgroup holds. */
const rowsHeld = 64;
const threadsPerGroup = 128;
const boxBytes = 128;
/** Bytes that the engine writes at once: where a line ends within them, it would write beyond the line. */
const storeUnit = 16;

/** What leaving needs of the kernel's arguments; C and D are the matrices of one tile. */
export interface StoreArguments {
  readonly c: GlobalArray<StorageType>;
  readonly d: GlobalArray<StorageType>;
  readonly boxes: TensorMap<StorageType>;
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly leadingC: Value<Index>;
  readonly leadingD: Value<Index>;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
}

/** Columns of D that a tile has. */
function resultColumns(kind: Pick<GemmKind, "gate" | "params">): number {
  return kind.params.block.n / columnsPerResult(kind);
}

/** Whether D's lines can be written by tensor maps: numbers of 16 and 32 bits in aligned rows, in whole boxes. */
export function storesBoxes(kind: Pick<GemmKind, "d" | "gate" | "params" | "operator">): boolean {
  const { type, alignment } = kind.d;
  const isWhole = resultColumns(kind) % (boxBytes / byteSize(type)) === 0;
  return componentsOf(kind) === 1 && alignment === 16 && (type.bits === 16 || type.bits === 32) && isWhole;
}

/** Box of D's tensor map, innermost first, and one of D's matrices where there are several. */
export function storeBox(kind: Pick<GemmKind, "d" | "batch" | "params">): readonly number[] {
  const box = [boxBytes / byteSize(kind.d.type), rowsHeld];
  return kind.batch === "single" && !dividesK(kind) ? box : [...box, 1];
}

/** Rows that one warp of a warpgroup holds. */
const rowsOfWarp = 16;

/** What of D leaves one partial state for each reduction: a warp's share of the tile. */
export function warpgroupParts(kind: Pick<GemmKind, "gate" | "params">): PartExtents {
  return { rows: rowsOfWarp, columns: resultColumns(kind) };
}

/** Bytes of shared memory for one warpgroup's boxes. */
export const storeBytes: number = 2 * boxBytes * rowsHeld;

/** Coordinates in D. */
interface Place {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}

/** What all tiles of a block leave through. */
export interface StoreResources {
  readonly boxes: SharedMemory<StorageType> | undefined;
  readonly steps: readonly (readonly StepOperand[])[];
  readonly collectors: Collectors | undefined;
}

/** The resources of a block with so many multiplying warpgroups. */
export function storeResources(kind: GemmKind, args: StoreArguments, groups: number): StoreResources {
  const given = args as unknown as Readonly<Record<string, unknown>>;
  const collectors = new Collectors({
    steps: kind.steps,
    args: given,
    rows: args.m,
    columns: args.n,
    parts: warpgroupParts(kind),
    // Accumulators lie in quads of lanes along a row, eight rows of them: the layout of every m64nNkK.
    grid: { fastest: "C", R: 8, C: 4 },
  });
  const elements = (groups * storeBytes) / byteSize(kind.d.type);
  return {
    boxes: storesBoxes(kind) ? shared(kind.d.type, elements, 1024) : undefined,
    steps: stepOperands(kind.steps, given),
    collectors: collectors.needed ? collectors : undefined,
  };
}

/** Waits until the last boxes have been read: shared memory must outlive them. */
export function finishStores({ boxes }: StoreResources): void {
  if (boxes !== undefined) when(isLeader(), () => tensorStoreWait(0, { read: true }));
}

/** The thread of a warpgroup that starts its stores. */
function isLeader(): Condition {
  return thread.index.floorMod(threadsPerGroup).eq(0);
}

/** How the accumulators of one tile leave. */
export class WarpgroupStore {
  constructor(
    private readonly kind: GemmKind,
    private readonly args: StoreArguments,
    private readonly resources: StoreResources,
    private readonly transforms: Transforms,
    /** Number of the tile's matrix among those of D; undefined where there is one. */
    private readonly matrix: Value<I32> | undefined,
  ) {}

  /**
   * Stores 64 rows of a tile, those that begin at (row, column) of the product. `group` says which warpgroup that multiplies
   * this is. Elements of a gated D are counted as those of the accumulator's first half.
   */
  leave(
    [accumulator]: readonly AnyFragment[],
    row: Value<I32>,
    ofProduct: Value<I32>,
    group: Value<I32>,
  ): void {
    const perResult = columnsPerResult(this.kind);
    const column = perResult === 1 ? ofProduct : ofProduct.div(perResult);
    const first = { row, column };
    this.#collecting(["row", "all"], accumulator, [0, accumulator.count / perResult], first, () => {
      this.#leave(accumulator, first, group);
    });
  }

  /**
   * Does `body`, which meets elements `from` up to `to`, and joins what steps reduce of them along some axes over the 16 rows
   * of each warp. All lanes together.
   */
  #collecting(
    axes: readonly ReductionAxis[],
    accumulator: AnyFragment,
    [from, to]: readonly [number, number],
    first: Place,
    body: () => void,
  ): void {
    const { collectors } = this.resources;
    if (collectors === undefined) {
      body();
      return;
    }
    const elements = Array.from({ length: to - from }, (_, i) => this.#offset(accumulator, from + i));
    const distinct = (which: "row" | "column"): readonly number[] =>
      [...new Set(elements.map((at) => at[which]))].sort((a, b) => a - b);
    const lane = (accumulator.layout as FragmentLayout).lane();
    const warp = subgroup.index.floorMod(4).mul(rowsOfWarp);
    collectors.open(
      axes,
      {
        part: { row: first.row.add(warp), column: first.column },
        lane: { row: first.row.add(lane.row), column: first.column.add(lane.column) },
      },
      { rows: distinct("row"), columns: distinct("column") },
    );
    body();
    collectors.close(axes);
  }

  #offset(accumulator: AnyFragment, i: number): { readonly row: number; readonly column: number } {
    return (accumulator.layout as FragmentLayout).element(i);
  }

  #leave(accumulator: AnyFragment, first: Place, group: Value<I32>): void {
    const { m, n } = this.args;
    const { row, column } = first;
    const columns = resultColumns(this.kind);
    const whole = (): Condition => row.add(rowsHeld).le(m).and(column.add(columns).le(n));
    const { boxes } = this.resources;
    if (boxes === undefined) {
      when(whole(), () => this.#pairs(accumulator, first, false)).otherwise(() =>
        this.#pairs(accumulator, first, true),
      );
      return;
    }
    const readsArrays =
      this.kind.c !== undefined ||
      this.kind.steps.some(
        ({ operands, behaviour }) =>
          operands.some(({ shape }) => shape !== "number") || behaviour.collects !== undefined,
      ) ||
      Object.keys(this.kind.extras).length > 0;
    const wholeUnits = (): Condition =>
      column
        .add(columns)
        .le(n)
        .or(n.floorMod(storeUnit / byteSize(this.kind.d.type)).eq(0));
    when(readsArrays ? whole() : wholeUnits(), () =>
      this.#gather(boxes, accumulator, first, group),
    ).otherwise(() => {
      this.#pairs(accumulator, first, true);
    });
  }

  // Through shared memory ---------------------------------------------------------------------------------------------

  #gather(boxes: SharedMemory<StorageType>, accumulator: AnyFragment, first: Place, group: Value<I32>): void {
    const { kind, args } = this;
    const columns = boxBytes / byteSize(kind.d.type);
    const boxElements = columns * rowsHeld;
    const leader = isLeader();
    const barrier = group.add(1);
    const count = resultColumns(kind) / columns;
    for (let box = 0; box < count; box++) {
      const origin = group.mul(2 * boxElements).add((box % 2) * boxElements);
      // The box that last lay in this half of the memory has left, and everybody knows: the one before the last, or after
      // an odd number of them the last of the tile before.
      const pending = box === 0 && count % 2 === 1 ? 0 : 1;
      when(leader, () => tensorStoreWait(pending, { read: true }));
      namedBarrier.sync(barrier, threadsPerGroup);
      if (kind.d.type.bits === 16) this.#fillByMatrices(boxes, accumulator, first, origin, box * columns);
      else this.#fillByPairs(boxes, accumulator, first, origin, box * columns);
      proxyFence();
      namedBarrier.sync(barrier, threadsPerGroup);
      when(leader, () => {
        const number = this.matrix === undefined ? [] : [this.matrix];
        args.boxes.store(boxes, origin, [first.column.add(box * columns), first.row, ...number]);
        tensorStoreCommit();
      });
    }
  }

  /** 16-bit elements: four 8x8 matrices at a time, 16 rows by 16 columns of each warp. */
  #fillByMatrices(
    boxes: SharedMemory<StorageType>,
    accumulator: AnyFragment,
    first: Place,
    origin: Value<I32>,
    firstColumn: number,
  ): void {
    const { type } = this.kind.d;
    const columns = boxBytes / byteSize(type);
    const row = subgroup.index.floorMod(4).mul(16).add(subgroup.lane.floorMod(16));
    // Lines of 128 bytes are eight units of 16; a line's units are exchanged by the line's number modulo eight.
    const unit = subgroup.lane.floorDiv(16).xor(row.floorMod(8));
    const line = origin.add(row.mul(columns));
    for (let column = 0; column < columns; column += 16) {
      const registers = new Fragment(type, 2, 4, undefined, "leaving");
      // Eight columns of the accumulator are four elements: two rows of two neighbours.
      const element = ((firstColumn + column) / 8) * 4;
      this.#collecting(["column"], accumulator, [element, element + 8], first, () => {
        for (let pair = 0; pair < 4; pair++) {
          const values = this.#combined(accumulator, element + 2 * pair, 2, first);
          registers.setRegister(pair, vector(...values) as never);
        }
      });
      storeMatrix(registers, 4, boxes, line.add(unit.xor(column / 8).mul(8)));
    }
  }

  /** 32-bit elements: each lane's pairs. */
  #fillByPairs(
    boxes: SharedMemory<StorageType>,
    accumulator: AnyFragment,
    first: Place,
    origin: Value<I32>,
    firstColumn: number,
  ): void {
    const columns = boxBytes / byteSize(this.kind.d.type);
    const row = subgroup.index.floorMod(4).mul(16).add(subgroup.lane.floorDiv(4));
    const pair = subgroup.lane.floorMod(4);
    const unit = pair.floorDiv(2).xor(row.floorMod(8));
    const line = origin.add(row.mul(columns)).add(pair.floorMod(2).mul(2));
    for (let column = 0; column < columns; column += 8) {
      const at = line.add(unit.xor(column / 4).mul(4));
      const element = ((firstColumn + column) / 8) * 4;
      this.#collecting(["column"], accumulator, [element, element + 4], first, () => {
        for (const half of [0, 1]) {
          const values = this.#combined(accumulator, element + 2 * half, 2, first);
          boxes.storeVectorAt(at.add(half * 8 * columns), vector(...values));
        }
      });
    }
  }

  // Straight from registers ---------------------------------------------------------------------------------------------

  #pairs(accumulator: AnyFragment, first: Place, guarded: boolean): void {
    for (let element = 0; element < accumulator.count / columnsPerResult(this.kind); element += 4) {
      this.#collecting(["column"], accumulator, [element, element + 4], first, () => {
        this.#pair(accumulator, element, first, guarded);
        this.#pair(accumulator, element + 2, first, guarded);
      });
    }
  }

  /** Elements `i` and `i + 1`, neighbours in a row. */
  #pair(accumulator: AnyFragment, i: number, first: Place, guarded: boolean): void {
    const { kind, args } = this;
    const wide =
      kind.d.alignment >= 2 * byteSize(kind.d.type) &&
      (kind.c === undefined || kind.c.alignment >= 2 * byteSize(kind.c.type));
    const at = this.#coordinates(accumulator, i, first);
    const inside = (e: number): Condition =>
      guarded ? at.row.lt(args.m).and(at.column.add(e).lt(args.n)) : true;
    const single = (e: number): void => {
      when(inside(e), () =>
        args.d.storeAt(this.#position(at, e), this.#combined(accumulator, i + e, 1, first)[0]),
      );
    };
    if (!wide) {
      single(0);
      single(1);
      return;
    }
    when(inside(1), () => {
      args.d.storeVectorAt(this.#position(at, 0), vector(...this.#combined(accumulator, i, 2, first)));
    }).otherwise(() => single(0));
  }

  // Both --------------------------------------------------------------------------------------------------------------

  #coordinates(accumulator: AnyFragment, i: number, first: Place): Place {
    const { row, column } = accumulator.coordinates(i);
    return { row: first.row.add(row), column: first.column.add(column) };
  }

  #position({ row, column }: Place, e: number): Value<Index> {
    return row.to(index).mul(this.args.leadingD).add(column.to(index)).add(e);
  }

  /** `count` neighbouring elements of D from element `i` of the accumulator on. */
  #combined(accumulator: AnyFragment, i: number, count: 1 | 2, first: Place): readonly AnyValue[] {
    const { kind, args } = this;
    const { gate } = kind;
    const at = this.#coordinates(accumulator, i, first);
    // Groups of columns are whole eights of them, each four elements of a lane.
    const ofGroup = (gateGroup / 8) * 4;
    const element = gate === undefined ? i : i + Math.floor(i / ofGroup) * ofGroup;
    const held = (from: number): readonly AnyValue[] =>
      Array.from({ length: count }, (_, e) => accumulator.get(from + e));
    return combine(
      {
        scaleType: scaleTypeOf(kind.types.accumulator),
        alpha: args.alpha,
        beta: args.beta,
        transforms: this.transforms,
        gate: gate === undefined ? undefined : { apply: gate, products: held(element + ofGroup) },
        steps: kind.steps,
        stepOperands: this.resources.steps,
        collectors: this.resources.collectors,
        target: kind.d.type,
        source: kind.c === undefined ? undefined : () => this.#addend(count, at),
      },
      held(element),
      {
        count,
        along: "C",
        aligned: true,
        offset: this.#offset(accumulator, i),
        at: (e) => ({ row: at.row, column: at.column.add(e) }),
      },
    );
  }

  #addend(count: 1 | 2, { row, column }: Place): readonly AnyValue[] {
    const { c, leadingC } = this.args;
    const position = row.to(index).mul(leadingC).add(column.to(index));
    const wide = count === 2 && (this.kind.c?.alignment ?? 0) >= 2 * byteSize(c.type);
    if (wide) return c.loadVectorAt(2, position).elements();
    return Array.from({ length: count }, (_, e) => c.loadAt(position.add(e)));
  }
}
