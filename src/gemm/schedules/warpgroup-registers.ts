/**
 * @file A through registers: the half of the operand that a warpgroup multiplies is loaded from the swizzled tile that a
 * tensor map wrote, changed element by element, and handed to wgmma in its register form.
 *
 * The tile is one of 128-byte lines, in whose 16-byte chunks the hardware has exchanged number c of line l with number
 * c xor (l mod 8) (PTX ISA, "Swizzling modes"). ldmatrix takes eight lines' chunks at a time and, transposing, serves both
 * orders, so that neither costs a bank conflict.
 */
import {
  type AnyFragment,
  type AnyValue,
  type Condition,
  type I32,
  loadMatrix,
  type SharedMemory,
  type StorageType,
  subgroup,
  type Value,
  warpgroupFragment,
  when,
} from "../../lang/index.ts";
import type { MatrixInstruction } from "../../target/facts.ts";
import { joined, separate } from "../transforms.ts";

/** Elements of 16 bits in a line, and in one of its chunks. */
const lineElements = 64;
const chunkElements = 8;

/** What becomes of an element. `at` is its place in the whole matrix; `edge` says that it may lie beyond its end along K. */
export type ElementChange = (
  value: AnyValue,
  at: { readonly row: Value<I32>; readonly column: Value<I32> },
  edge: boolean,
) => AnyValue;

/** What a {@link RegisterOperand} loads. */
export interface RegisterOperandOptions {
  readonly instruction: MatrixInstruction;
  /** K slices of a stage. */
  readonly slices: number;
  readonly memory: SharedMemory<StorageType>;
  /** "k": lines run along K, one for each row; "mn": lines run along M, one for each element of K. */
  readonly major: "k" | "mn";
}

/** Where a stage lies in the matrix. */
export interface StagePlace {
  readonly row: Value<I32>;
  readonly depth: Value<I32>;
  /** Whether the stage reaches beyond the matrix's end along K. */
  readonly edge: Condition;
}

/** One stage of A in registers. */
export class RegisterOperand {
  /** What products read while they run. */
  readonly slices: readonly AnyFragment[];

  constructor(private readonly options: RegisterOperandOptions) {
    this.slices = Array.from({ length: options.slices }, () => warpgroupFragment(options.instruction, "a"));
  }

  /**
   * Loads and changes a stage, whose 64 rows begin at `position` in shared memory. Products may still run on the stage
   * before.
   */
  load(position: Value<I32>, change: ElementChange, { row, depth, edge }: StagePlace): void {
    this.slices.forEach((fragment, slice) => {
      this.#fetch(fragment, position, slice);
    });
    when(edge, () => this.#change(change, row, depth, true)).otherwise(() =>
      this.#change(change, row, depth, false),
    );
  }

  #fetch(target: AnyFragment, position: Value<I32>, slice: number): void {
    const { memory, major, instruction } = this.options;
    const { lane } = subgroup;
    const warp = subgroup.index.floorMod(4);
    const first = slice * instruction.k;
    if (major === "k") {
      // Lanes 0 to 15 address rows, lanes 16 to 31 the same rows eight elements of K further.
      const line = warp.mul(16).add(lane.floorMod(16));
      const chunk = lane
        .floorDiv(16)
        .xor(lane.floorMod(8))
        .xor(first / chunkElements);
      const at = position.add(line.mul(lineElements)).add(chunk.mul(chunkElements));
      loadMatrix(target, 4, memory, at);
      return;
    }
    // Matrices in the order (rows 0-7, K 0-7), (8-15, 0-7), (0-7, 8-15), (8-15, 8-15), stored with K along the lines.
    const line = lane.floorDiv(16).mul(8).add(lane.floorMod(8));
    const chunk = warp.mul(2).add(lane.floorDiv(8).floorMod(2)).xor(lane.floorMod(8));
    const at = position.add(line.mul(lineElements)).add(chunk.mul(chunkElements));
    loadMatrix(target, 4, memory, at.add(first * lineElements), { transpose: true });
  }

  #change(change: ElementChange, row: Value<I32>, depth: Value<I32>, edge: boolean): void {
    const { instruction } = this.options;
    this.slices.forEach((fragment, slice) => {
      const lane = fragment.layout!.lane();
      const place = { row: row.add(lane.row), column: depth.add(lane.column).add(slice * instruction.k) };
      for (let number = 0; number < fragment.registers; number++) {
        const changed = separate(fragment.register(number)).map((value, e) => {
          const within = fragment.layout!.element(number * fragment.packed + e);
          const at = { row: place.row.add(within.row), column: place.column.add(within.column) };
          return change(value, at, edge).to(fragment.type);
        });
        fragment.setRegister(number, joined(changed));
      }
    });
  }
}
