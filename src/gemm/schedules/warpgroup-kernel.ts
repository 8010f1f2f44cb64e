/**
 * @file The warpgroup kernel: tensor maps bring tiles into a ring of shared stages, warpgroups multiply them out of
 * shared memory, blocks stay resident and take one output tile after another.
 *
 * ```
 * producer (one thread):  for each tile, each K step: wait empty[s]; announce bytes on full[s]; start both loads
 * consumers (warpgroups): for each tile, each K step: wait full[s]; start the products of step s;
 *                         wait for those of step s-1; arrive on empty[s-1];  then the epilogue, from registers
 * ```
 *
 * Where something happens to A's elements, or not all of them count, consumers load them from the shared stage into
 * registers, change them there, and multiply by the instruction's register form; see warpgroup-registers.ts.
 *
 * While consumers run an epilogue, the producer already fills the ring for the next tile. Tensor maps clip what lies
 * outside the matrices: loads see zeros, so remainders of M, N and K cost nothing here. The protocol follows the public
 * Hopper kernels surveyed by the PTX ISA's own example and CUTLASS's warp-specialised mainloop.
 */
import {
  type BarrierArray,
  type Bool,
  barrierInitFence,
  barriers,
  block,
  type Condition,
  constant,
  grid,
  type I32,
  i32,
  type Kernel,
  kernel,
  loop,
  loopWhile,
  roles,
  subgroup,
  thread,
  type Value,
  variable,
  when,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { allExtraValues, type ExtrasOf, type ExtraValue } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import type { StepSequence } from "../predicate.ts";
import { closedTransforms } from "../transforms.ts";
import { countedSteps, everyStepCounts } from "./counted-steps.ts";
import { tileCount, tilePlace } from "./tile-order.ts";
import { ElementStore } from "./warpgroup-elements.ts";
import {
  resultArguments,
  tileArguments,
  type WarpgroupArguments,
  warpgroupParameters,
} from "./warpgroup-interface.ts";
import {
  arrivalsOf,
  mainloopOf,
  type RingBarriers,
  RingPosition,
  type StepWalk,
  TileTurns,
} from "./warpgroup-mainloop.ts";
import { StagedOperand } from "./warpgroup-operands.ts";
import { elementChange, handOver, rewriteTile, rewritingWarps } from "./warpgroup-rewriting.ts";
import {
  check,
  consumersOf,
  groupRows,
  isPingPong,
  partsOf,
  passageOf,
  rewrittenOf,
  sized,
  stageCount,
  threadsPerGroup,
} from "./warpgroup-shape.ts";
import { finishStores, type StoreResources, storeResources, WarpgroupStore } from "./warpgroup-store.ts";
import { dividesK, type Work, workOf } from "./work.ts";

/** The kernel of a kind. */
export function warpgroupKernel(kind: GemmKind): Kernel {
  const consumers = consumersOf(kind);
  return kernel("gemm_warpgroup", {
    params: warpgroupParameters(kind),
    block: (consumers + 1) * threadsPerGroup,
    blocksPerMultiprocessor: 1,
    body: (args, facts) => new WarpgroupBody(kind, args as unknown as WarpgroupArguments, facts).write(),
  });
}

/** Registers a thread of each role: together no more than the 504 that three warpgroups have. */
function registersOf(kind: GemmKind): { readonly producer: number; readonly consumers: number } {
  return rewrittenOf(kind).length === 0
    ? { producer: 24, consumers: 240 }
    : { producer: 104, consumers: 200 };
}

/** An output tile that a block computes. */
interface OutputTile extends Work {
  /** Its first element in its matrix. */
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}

/** Which of the block's tiles: those of one of `of` warpgroups, or all. */
interface TileShare {
  readonly group: Value<I32> | undefined;
  readonly of: number;
}

const wholeShare: TileShare = { group: undefined, of: 1 };

class WarpgroupBody {
  readonly #stages: number;
  readonly #a: StagedOperand;
  readonly #b: StagedOperand;
  readonly #barriers: RingBarriers;
  /** Completed when the tiles of a stage have come that are rewritten; undefined where there are none. */
  readonly #brought: BarrierArray | undefined;
  /** Undefined where both warpgroups share each tile. */
  readonly #turns: TileTurns | undefined;
  readonly #steps: Value<I32>;
  readonly #tilesEach: Value<I32>;
  readonly #store: StoreResources;
  readonly #extras: ExtrasOf<ExtraValue>;
  readonly #counted: StepSequence;

  constructor(
    private readonly kind: GemmKind,
    private readonly args: WarpgroupArguments,
    private readonly facts: TargetFacts,
  ) {
    check(kind, facts);
    this.#stages = stageCount(kind, facts);
    this.#extras = allExtraValues(kind.extras, args as unknown as Readonly<Record<string, unknown>>);
    this.#a = new StagedOperand(kind, "a", this.#stages, this.#extras.a ?? []);
    this.#b = new StagedOperand(kind, "b", this.#stages, this.#extras.b ?? []);
    this.#store = storeResources(kind, resultArguments(kind, args), consumersOf(kind));
    this.#barriers = { full: barriers(this.#stages), empty: barriers(this.#stages) };
    this.#brought = rewrittenOf(kind).length === 0 ? undefined : barriers(this.#stages);
    this.#turns = isPingPong(kind) ? new TileTurns() : undefined;
    this.#steps = args.k.ceilDiv(kind.params.block.k);
    this.#tilesEach = tileCount(kind.params, args.m, args.n);
    this.#counted = countedSteps(kind, this.#extras);
  }

  write(): void {
    const { kind } = this;
    const consumers = consumersOf(kind);
    const { full, empty } = this.#barriers;
    const brought = this.#brought;
    const direct = rewrittenOf(kind).length < 2 ? 1 : 0;
    when(thread.index.eq(0), () => {
      for (let stage = 0; stage < this.#stages; stage++) {
        // Of the loads, and of each warp that rewrites.
        full.initialise(stage, direct + (brought === undefined ? 0 : rewritingWarps));
        brought?.initialise(stage, 1);
        empty.initialise(stage, isPingPong(kind) ? 1 : consumers * arrivalsOf(kind));
      }
      this.#turns?.initialise();
      barrierInitFence();
    });
    block.barrier();
    const registers = registersOf(kind);
    roles([
      { name: "producer", warpgroups: 1, registers: registers.producer, body: () => this.#fill() },
      {
        name: "consumers",
        warpgroups: consumers,
        registers: registers.consumers,
        body: () => this.#consume(),
      },
    ]);
  }

  /** Fills the stages: one thread starts loads; where tiles are rewritten, the other warps do. */
  #fill(): void {
    const brought = this.#brought;
    if (brought === undefined) {
      when(thread.index.eq(0), () => this.#produce());
      return;
    }
    when(subgroup.index.lt(rewritingWarps), () => this.#rewrite(brought)).otherwise(() => {
      when(subgroup.lane.eq(0), () => this.#produce());
    });
  }

  /** The tiles that a block computes; or, of all blocks' warpgroups together, those of one of `of` warpgroups. */
  #eachTile(body: (tile: OutputTile) => void, { group, of }: TileShare = wholeShare): void {
    const { kind, args } = this;
    const each = this.#tilesEach;
    const several = kind.batch !== "single" || dividesK(kind);
    const all = several ? each.mul(args.matrices) : each;
    const first = group === undefined ? block.id.x : block.id.x.add(group.mul(grid.size.x));
    loop({ from: first, to: all, step: grid.size.x.mul(of) }, (number) => {
      const work = workOf(kind, args, number, () => each);
      body({ ...work, ...tilePlace(kind, args.m, args.n, work.tile) });
    });
  }

  /**
   * The K steps of a tile that count, the same ones in every role; `later()` is false for the first of them. Gives whether
   * there was any; undefined where there always is.
   */
  #eachStep(
    { row, column, range }: OutputTile,
    body: (step: Value<I32>, later: () => Value<Bool>) => void,
  ): (() => Value<Bool>) | undefined {
    const steps = this.#steps;
    const { first, end } = range(steps);
    if (everyStepCounts(this.kind)) {
      loop({ from: first, to: end }, (step) => body(step, () => step.ne(first)));
      return first === 0 ? undefined : () => first.lt(end);
    }
    const { m, n, k } = this.kind.params.block;
    const tile = { row, column, rows: m, columns: n, depth: k, steps };
    const step = variable(i32, this.#counted.next(tile, first === 0 ? constant(i32, 0) : first));
    const done = variable(i32, 0);
    loopWhile(
      () => step.value.lt(end),
      () => {
        const here = step.value;
        body(here, () => done.value.ne(0));
        done.value = 1;
        step.value = this.#counted.next(tile, here.add(1));
      },
    );
    return () => done.value.ne(0);
  }

  #produce(): void {
    const { args, kind } = this;
    const { full, empty } = this.#barriers;
    args.a.prefetch();
    args.b.prefetch();
    // A fresh barrier's phase of parity 1 counts as completed: the first round through the ring waits for nobody.
    const position = new RingPosition(this.#stages, 1);
    const operands = [this.#a, this.#b];
    const receiver = ({ operand }: StagedOperand): BarrierArray =>
      passageOf(kind, operand) === "rewritten" ? this.#brought! : full;
    const bytesOf = (barriers: BarrierArray): number =>
      operands.filter((one) => receiver(one) === barriers).reduce((sum, { bytes }) => sum + bytes, 0);
    const receivers = [...new Set(operands.map(receiver))];
    this.#eachTile((tile) => {
      const matrixA = tile.batch?.min(args.matricesA.sub(1));
      const matrixB = tile.batch?.min(args.matricesB.sub(1));
      this.#eachStep(tile, (step) => {
        const stage = position.stage.value;
        empty.wait(stage, position.phase);
        for (const barriers of receivers) barriers.arriveExpect(stage, bytesOf(barriers));
        const depth = step.mul(kind.params.block.k);
        const target = (operand: StagedOperand) => ({ stage, barriers: receiver(operand) });
        this.#a.load(args.a, target(this.#a), { depth, across: tile.row }, matrixA);
        this.#b.load(args.b, target(this.#b), { depth, across: tile.column }, matrixB);
        position.advance();
      });
    });
  }

  /** Changes what tensor maps have brought, stage by stage, before consumers see it. */
  #rewrite(brought: BarrierArray): void {
    const { args, kind } = this;
    const { k } = kind.params.block;
    const position = new RingPosition(this.#stages, 0);
    this.#eachTile((tile) => {
      const transforms = closedTransforms(kind.transforms, this.#extras, args, tile.batch);
      this.#eachStep(tile, (step) => {
        const stage = position.stage.value;
        const depth = step.mul(k);
        const edge = (): Condition => depth.add(k).gt(args.k);
        brought.wait(stage, position.phase);
        for (const operand of rewrittenOf(kind)) {
          const [staged, across] = operand === "a" ? [this.#a, tile.row] : [this.#b, tile.column];
          const change = elementChange(kind, operand, transforms, this.#extras, args);
          rewriteTile(staged, stage, { across, depth, edge }, change);
        }
        handOver(() => this.#barriers.full.arrive(stage));
        position.advance();
      });
    });
  }

  /** Whether a K step of a warpgroup's rows of A goes as it lies in memory; undefined where none does. */
  #unchanged(row: Value<I32>): ((depth: Value<I32>) => Value<Bool>) | undefined {
    const { a, transforms, params } = this.kind;
    const { allCount } = a.layout;
    if (transforms.a !== undefined || allCount === undefined) return undefined;
    const area = { row, rows: groupRows, columns: params.block.k };
    return (column) => allCount({ ...area, column }, this.#extras.a ?? []);
  }

  #consume(): void {
    const { kind, args } = this;
    const extras = this.#extras;
    // The consumers are the block's second and later warpgroups.
    const group = subgroup.index.floorDiv(4).sub(1);
    const turn = this.#turns?.of(group);
    const held = partsOf(kind);
    const firstPart = turn ? constant(i32, 0) : group.mul(held);
    const parts = Array.from({ length: held }, (_, part) => firstPart.add(part));
    const position = new RingPosition(this.#stages, 0);
    const mainloop = mainloopOf({
      kind,
      instruction: sized(kind, this.facts),
      a: this.#a,
      b: this.#b,
      barriers: this.#barriers,
      position,
      parts,
      k: args.k,
    });
    // In turn, the stages of every other tile are the other warpgroup's; the first tile is the first one's.
    if (turn) when(group.ne(0), () => position.skip(this.#steps));
    this.#eachTile(
      (tile) => {
        const transforms = closedTransforms(kind.transforms, this.#extras, args, tile.batch);
        const walk: StepWalk = (body) => {
          turn?.begin();
          const any = this.#eachStep(tile, body);
          turn?.end();
          return any;
        };
        mainloop.sum(walk, {
          row: tile.row.add(firstPart.mul(groupRows)),
          change: elementChange(kind, "a", transforms, this.#extras, args),
          unchanged: this.#unchanged(tile.row.add(firstPart.mul(groupRows))),
        });
        if (turn) position.skip(this.#steps);
        const ofTile = resultArguments(kind, tileArguments(args, tile));
        const { algebra } = kind.epilogue;
        const store =
          algebra === undefined
            ? new WarpgroupStore(kind, ofTile, this.#store, transforms, tile.target)
            : new ElementStore({ kind, algebra, args: ofTile, resources: this.#store, transforms, extras });
        mainloop.accumulators.forEach((sums, i) => {
          store.leave(sums, tile.row.add(parts[i].mul(groupRows)), tile.column, group);
        });
      },
      turn ? { group, of: consumersOf(kind) } : wholeShare,
    );
    finishStores(this.#store);
  }
}
