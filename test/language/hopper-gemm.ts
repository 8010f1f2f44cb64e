/**
 * @file D = A·Bᵀ on Hopper, as fast as the hardware allows, written in the kernel language alone: persistent blocks, a
 * ring of stages that one thread fills with tensor copies, two warpgroups that multiply from it.
 *
 * A is M x K and B is N x K, both row-major f16; D is M x N, row-major f16; sums in f32. M is a multiple of 128, N of
 * 256, K of 64.
 */
import {
  barrierInitFence,
  barriers,
  block,
  f16,
  findInstruction,
  grid,
  type I32,
  i32,
  kernel,
  loop,
  min,
  output,
  roles,
  select,
  shared,
  tensorMap,
  thread,
  toIndex,
  type Value,
  variable,
  vector,
  warpgroupCommit,
  warpgroupFence,
  warpgroupFragment,
  warpgroupMma,
  warpgroupWait,
  when,
} from "tilewright/lang";

/** What one block computes at a time. */
const tile = { m: 128, n: 256, k: 64 };
const stages = 4;
/** Tile rows that run side by side, so that they find their columns of B in the cache. */
const rowsPerGroup = 16;
/** Each consumer warpgroup does half of a tile's rows. */
const consumers = 2;
const threadsPerGroup = 128;

/** A stage of the ring, and the parity of the round it is in. */
class RingPosition {
  readonly #stage = variable(i32, 0);
  readonly #parity;

  constructor(firstParity: 0 | 1) {
    this.#parity = variable(i32, firstParity);
  }
  get stage(): Value<I32> {
    return this.#stage.value;
  }
  get parity(): Value<I32> {
    return this.#parity.value;
  }
  advance(): void {
    const next = this.stage.add(1);
    const wraps = next.eq(stages);
    this.#stage.value = select(wraps, 0, next);
    this.#parity.value = select(wraps, this.parity.xor(1), this.parity);
  }
}

/** Calls `body` with the rows and columns of this block's tiles, counted in tiles: groups of rows, each column by column. */
function forEachTile(
  m: Value<I32>,
  n: Value<I32>,
  body: (row: Value<I32>, column: Value<I32>) => void,
): void {
  const rows = m.ceilDiv(tile.m);
  const columns = n.ceilDiv(tile.n);
  const tilesPerGroup = columns.mul(rowsPerGroup);
  loop({ from: block.id.x, to: rows.mul(columns), step: grid.size.x }, (number) => {
    const group = number.div(tilesPerGroup);
    const firstRow = group.mul(rowsPerGroup);
    const rowsHere = min(rows.sub(firstRow), rowsPerGroup);
    const within = number.sub(group.mul(tilesPerGroup));
    body(firstRow.add(within.rem(rowsHere)), within.div(rowsHere));
  });
}

export const hopperGemm = kernel("hopper_gemm", {
  params: {
    a: tensorMap(f16, [tile.k, tile.m], 128),
    b: tensorMap(f16, [tile.k, tile.n], 128),
    d: output(f16, 0),
    m: i32,
    n: i32,
    k: i32,
  },
  block: (1 + consumers) * threadsPerGroup,
  blocksPerMultiprocessor: 1,
  body({ a, b, d, m, n, k }, facts) {
    const instruction = findInstruction(facts.warpgroupMma, { a: "f16", b: "f16", accumulator: "f32" })!;
    const stagesA = shared(f16, [stages, tile.m, tile.k], 1024);
    const stagesB = shared(f16, [stages, tile.n, tile.k], 1024);
    const full = barriers(stages);
    const empty = barriers(stages);
    when(thread.index.eq(0), () => {
      for (let stage = 0; stage < stages; stage++) {
        full.initialise(stage, 1);
        empty.initialise(stage, consumers);
      }
      barrierInitFence();
    });
    block.barrier();
    const steps = k.ceilDiv(tile.k);

    function produce(): void {
      when(thread.index.eq(0), () => {
        // A stage is free in the first round: waiting for the parity before the first passes at once.
        const ring = new RingPosition(1);
        forEachTile(m, n, (row, column) => {
          loop(steps, (step) => {
            const { stage } = ring;
            const ready = { barriers: full, index: stage };
            empty.wait(stage, ring.parity);
            full.arriveExpect(stage, a.boxBytes + b.boxBytes);
            a.load(stagesA, stagesA.position(stage, 0, 0), [step.mul(tile.k), row.mul(tile.m)], ready);
            b.load(stagesB, stagesB.position(stage, 0, 0), [step.mul(tile.k), column.mul(tile.n)], ready);
            ring.advance();
          });
        });
      });
    }

    function consume(): void {
      const consumer = thread.index.sub(threadsPerGroup).floorDiv(threadsPerGroup);
      const isLeader = thread.index.rem(threadsPerGroup).eq(0);
      const rowInTile = consumer.mul(tile.m / consumers);
      const sums = warpgroupFragment(instruction, "accumulator");
      const ring = new RingPosition(0);
      forEachTile(m, n, (row, column) => {
        const previous = variable(i32, 0);
        loop(steps, (step) => {
          const { stage } = ring;
          full.wait(stage, ring.parity);
          warpgroupFence();
          for (let inner = 0; inner < tile.k; inner += instruction.k) {
            warpgroupMma(
              instruction,
              sums,
              {
                memory: stagesA,
                position: stagesA.position(stage, rowInTile, inner),
                swizzle: 128,
                major: "k",
              },
              { memory: stagesB, position: stagesB.position(stage, 0, inner), swizzle: 128, major: "k" },
              { accumulate: inner > 0 || step.gt(0) },
            );
          }
          warpgroupCommit();
          // All but these products are done: the stage before is free.
          warpgroupWait(1);
          when(step.gt(0).and(isLeader), () => empty.arrive(previous.value));
          previous.value = stage;
          ring.advance();
        });
        warpgroupWait(0);
        when(isLeader, () => empty.arrive(previous.value));

        const lane = sums.layout!.lane();
        const top = toIndex(row.mul(tile.m).add(rowInTile).add(lane.row)).mul(toIndex(n));
        const first = top.add(toIndex(column.mul(tile.n).add(lane.column)));
        for (let i = 0; i < sums.count; i += 2) {
          const at = sums.layout!.element(i);
          const pair = vector(sums.get(i), sums.get(i + 1)).to(f16);
          d.storeVectorAt(first.add(toIndex(n).mul(at.row)).add(at.column), pair);
        }
      });
    }

    roles([
      { name: "producer", warpgroups: 1, registers: 40, body: produce },
      { name: "consumer", warpgroups: consumers, registers: 232, body: consume },
    ]);
  },
});
