/**
 * @file Tiles rewritten in shared memory: warps take what a tensor map brought, change each element, and leave the tile as
 * instructions want it, in place where the type stays the same. Products of other stages run meanwhile.
 *
 * The warps are those that the producer's warpgroup has to spare: a block of four warpgroups would leave a thread too few
 * registers for the widest instructions. A tile is lines of 64 elements, whichever direction they run in. Eight lanes
 * share a line, so that a warp's accesses of 16 bytes meet all banks evenly.
 */
import { type Condition, type I32, loop, proxyFence, subgroup, type Value, when } from "../../lang/index.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import type { Extents, Transforms } from "../transforms.ts";
import { joined, separate } from "../transforms.ts";
import { counting, maskOutside } from "./staged-copy.ts";
import { broughtLineBytes, type StagedOperand } from "./warpgroup-operands.ts";
import type { ElementChange } from "./warpgroup-registers.ts";
import { isChanged, kMajor, lineBytes, tileType } from "./warpgroup-shape.ts";

/** Elements of 16 bits in a line, and in the unit that a thread takes at once. */
const lineElements = 64;
const unitElements = 8;
const unitsPerLine = lineElements / unitElements;
/** Lines that a warp takes at once, and of how many it has the elements in registers at a time. */
const linesAtOnce = 32 / unitsPerLine;
const linesHeld = 16;
/** Lines of a group along M or N, one for each element of a K step. */
const linesOfGroup = 64;
/** Warps that rewrite: all of the producer's but the last, which starts loads. */
export const rewritingWarps = 3;

/** What happens to an operand's elements: both transforms, then zero for what is no element of the matrix. */
export function elementChange(
  kind: GemmKind,
  operand: "a" | "b",
  transforms: Transforms,
  extras: ExtrasOf<ExtraValue>,
  { m, n, k }: Extents,
): ElementChange {
  const { globalToShared, sharedToRegister } = transforms[operand] ?? {};
  const { layout } = kind[operand];
  const own = extras[operand] ?? [];
  const type = tileType(kind, operand);
  const [rows, columns] = operand === "a" ? [m, k] : [k, n];
  return (value, at, edge) => {
    const held = (globalToShared?.(value, at) ?? value).to(type);
    const changed = (sharedToRegister?.(held, at) ?? held).to(type);
    const counts = edge ? counting(at, rows, columns, layout, own) : layout.counts?.(at.row, at.column, own);
    return counts === undefined ? changed : maskOutside(changed, counts, 0);
  };
}

/** Where a tile lies in its matrix. */
export interface TilePosition {
  /** First row of A or column of B. */
  readonly across: Value<I32>;
  readonly depth: Value<I32>;
  /** Whether the tile reaches beyond the matrix's end along K. */
  readonly edge: () => Condition;
}

/** Rewrites one operand's tile of a stage. The rewriting warps together, which are the block's first. */
export function rewriteTile(
  staged: StagedOperand,
  stage: Value<I32>,
  position: TilePosition,
  change: ElementChange,
): void {
  const rewrite = new TileRewrite(staged, stage, position, change);
  // Zeros that are only converted stay zeros beyond the end.
  if (isChanged(staged.kind, staged.operand))
    when(position.edge(), () => rewrite.run(true)).otherwise(() => rewrite.run(false));
  else rewrite.run(false);
}

/** Lets instructions see what this warp has rewritten of a stage. `arrive` is called by one lane. */
export function handOver(arrive: () => void): void {
  proxyFence();
  subgroup.barrier();
  when(subgroup.lane.eq(0), arrive);
}

class TileRewrite {
  /** The lane's line among those taken at once, and its unit in the line. */
  readonly #line: Value<I32>;
  readonly #unit: Value<I32>;
  readonly #origin: Value<I32>;

  constructor(
    private readonly staged: StagedOperand,
    stage: Value<I32>,
    private readonly position: TilePosition,
    private readonly change: ElementChange,
  ) {
    this.#line = subgroup.lane.floorDiv(unitsPerLine);
    this.#unit = subgroup.lane.floorMod(unitsPerLine);
    this.#origin = staged.rowsOf(stage, undefined).add(this.#line.mul(lineElements));
  }

  run(edge: boolean): void {
    const { staged, change } = this;
    const blocks = staged.elements / (linesHeld * lineElements);
    const parts = Array.from({ length: linesHeld / linesAtOnce }, (_, part) => part);
    const bytes = broughtLineBytes(staged.kind, staged.operand);
    const [source, target] = [bytes, lineBytes].map((one) => parts.map((part) => this.#place(part, one)));
    loop({ from: subgroup.index, to: blocks, step: rewritingWarps }, (number) => {
      const moved = number.mul(linesHeld * lineElements);
      const held = source.map((place) =>
        separate(staged.brought.loadVectorAt(unitElements, place.add(moved))),
      );
      held.forEach((values, part) => {
        const changed = values.map((value, e) => change(value, this.#coordinates(number, part, e), edge));
        staged.memory.storeVectorAt(target[part].add(moved), joined(changed) as never);
      });
    });
  }

  /** The lane's unit of one of the lines in its registers, in lines of so many bytes, whose units of 16 are exchanged. */
  #place(part: number, bytes: number): Value<I32> {
    const first = part * linesAtOnce;
    const start = this.#origin.add(first * lineElements);
    const line = this.#line.add(first);
    if (bytes === lineBytes) return start.add(this.#unit.xor(line.floorMod(8)).mul(unitElements));
    // Lines of 64 bytes: two of them make one of the pattern's lines, and two of a lane's units one of its units.
    const pair = this.#unit.floorDiv(2).xor(line.floorDiv(2).floorMod(4));
    return start.add(pair.mul(2).add(this.#unit.floorMod(2)).mul(unitElements));
  }

  /** Where element `e` of a unit lies in the matrix. */
  #coordinates(number: Value<I32>, part: number, e: number): { row: Value<I32>; column: Value<I32> } {
    const { kind, operand } = this.staged;
    const { across, depth } = this.position;
    const line = number
      .mul(linesHeld)
      .add(this.#line)
      .add(part * linesAtOnce);
    const along = this.#unit.mul(unitElements).add(e);
    // Lines run along K, one for each row or column; or along M or N, 64 of them for as many rows or columns.
    const at = kMajor(kind, operand)
      ? { across: across.add(line), depth: depth.add(along) }
      : {
          across: across.add(line.floorDiv(linesOfGroup).mul(lineElements)).add(along),
          depth: depth.add(line.floorMod(linesOfGroup)),
        };
    return operand === "a" ? { row: at.across, column: at.depth } : { row: at.depth, column: at.across };
  }
}
