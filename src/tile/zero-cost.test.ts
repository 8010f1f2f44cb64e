/**
 * @file The claim of Faingnaert, Besard and De Sutter (section 4): tiles cost nothing at run time. Their three examples,
 * with instructions counted in the optimised representation and in the text: every shared offset, and every global one
 * along the unit stride, is an immediate; any other global offset costs one addition.
 */
import { describe, expect, it } from "vitest";
import { generatePtx } from "../codegen/ptx/index.ts";
import type { AnyOperation, KernelIr } from "../ir/nodes.ts";
import { visitStatements } from "../ir/parameters.ts";
import { verify } from "../ir/verifier.ts";
import {
  block,
  f32,
  input,
  type KernelArguments,
  kernel,
  loop,
  output,
  shared,
  subgroup,
  thread,
  vector,
} from "../lang/index.ts";
import { optimise } from "../passes/index.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { linearise } from "./linearise.ts";
import { parallelise, subdivide } from "./parallelise.ts";
import { tile, translate } from "./tile.ts";

const facts = nvidiaTarget("sm_80");
const params = { c: input(f32, 2), d: output(f32) };

interface Compiled {
  readonly ir: KernelIr;
  readonly ptx: string;
  /** Operations of the optimised kernel, those in its loop alone if it has one. */
  readonly operations: readonly AnyOperation[];
}

function compiled(body: (args: KernelArguments<typeof params>) => void): Compiled {
  const traced = kernel("tiles", { params, block: 128, body }).trace(facts);
  verify(traced);
  const ir = optimise(traced, facts);
  const operations: AnyOperation[] = [];
  const inner = ir.body.statements.find((statement) => statement.kind === "loop")?.body ?? ir.body;
  visitStatements(inner, (statement) => {
    if (statement.kind === "operation") operations.push(statement);
  });
  return { ir, ptx: generatePtx(ir, facts).text, operations };
}

/** How many operations there are of each kind, `index` arithmetic apart. */
function counts({ operations }: Compiled): Record<string, number> {
  const found: Record<string, number> = {};
  for (const { name, result } of operations) {
    const key = result?.type.element.name === "index" ? `${name} index` : name;
    found[key] = (found[key] ?? 0) + 1;
  }
  return found;
}

const matches = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
/** Immediates of the accesses, in bytes. */
const immediates = (text: string, access: string): number[] =>
  [...text.matchAll(new RegExp(`${access}\\S* [^[\\n]*\\[[%\\w]+(?:\\+(\\d+))?\\]`, "g"))].map(([, offset]) =>
    Number(offset ?? 0),
  );

describe("a tile of C from global to shared memory", () => {
  const blockTile = tile({ M: 64, N: 128 });

  /** Threads along N first: with 16 of them, a thread goes 64 columns at a time and then 8 rows. */
  const copy = (threads: number) =>
    compiled(({ c }) => {
      const staged = shared(f32, [64, 136]);
      const corner = { M: block.id.y.mul(64), N: block.id.x.mul(128) };
      for (const four of parallelise(blockTile, { M: 1, N: 4 }, thread.index, threads)) {
        const from = translate(four, corner);
        staged.storeVectorAt(linearise(four, 136), c.loadVectorAt(4, linearise(from, c.stride(0))));
      }
    });

  it("costs one address in shared memory, whatever the number of stores", () => {
    const made = copy(128);
    expect(immediates(made.ptx, "st\\.shared\\.v4")).toEqual(
      Array.from({ length: 16 }, (_, turn) => turn * 4 * 136 * 4),
    );
    const stores = made.operations.filter(({ name }) => name === "store");
    expect(new Set(stores.map(({ operands }) => operands[0])).size).toBe(1);
  });

  it("costs a multiplication and an addition for each other global offset: there is no loop to take them out of", () => {
    expect(counts(copy(128))).toEqual({
      builtin: 3,
      "bufferStride index": 1,
      // Row and column of the thread in the tile, of the block in the array, and their sums.
      shiftLeft: 3,
      and: 1,
      shiftRight: 1,
      mul: 1,
      add: 3,
      "convert index": 2,
      // The first position: a product and a sum. Then one of each for each of the 15 others.
      "mul index": 16,
      "add index": 16,
      load: 16,
      store: 16,
    });
  });

  it("costs nothing along the unit stride", () => {
    const made = copy(8);
    // 8 threads take 32 columns a turn: 4 turns along N for each of the 64 rows.
    expect(immediates(made.ptx, "ld\\.global\\.v4").slice(0, 8)).toEqual([
      0, 128, 256, 384, 0, 128, 256, 384,
    ]);
    // One address for each row; the second row is one stride away, without a product.
    expect(counts(made)).toMatchObject({ load: 256, store: 256, "add index": 64, "mul index": 63 });
  });

  it("in a loop, costs one addition for each other global offset and no multiplication", () => {
    const panel = tile({ M: 64, K: 16 });
    const made = compiled(({ c }) => {
      const staged = shared(f32, [64, 20]);
      loop({ to: c.size(1), step: 16 }, (k) => {
        for (const four of parallelise(panel, { M: 1, K: 4 }, thread.index, 64)) {
          const from = translate(four, { M: block.id.x.mul(64), K: k });
          staged.storeVectorAt(linearise(four, 20), c.loadVectorAt(4, linearise(from, c.stride(0))));
        }
        block.barrier();
      });
    });
    // The thread's own position takes a product and a sum; its three other rows take a sum each.
    expect(counts(made)).toMatchObject({ load: 4, store: 4, "mul index": 1, "add index": 1 + 3 });
    expect(immediates(made.ptx, "st\\.shared\\.v4")).toEqual([0, 1, 2, 3].map((turn) => turn * 16 * 20 * 4));
  });
});

describe("operands of the inner product from shared memory to registers", () => {
  it("cost one address for all loads", () => {
    const made = compiled(({ d }) => {
      const staged = shared(f32, [128, 36]);
      const warp = subdivide(tile({ M: 128, K: 32 }), { M: 32 }, subgroup.index, 4);
      const lane = { M: subgroup.lane.div(4), K: subgroup.lane.rem(4) };
      const loaded = parallelise(warp, { M: 8, K: 8 }, 0, 1).map((step) =>
        staged.loadAt(linearise(translate(step, lane), 36)),
      );
      d.store(
        thread.index,
        loaded.reduce((sum, value) => sum.max(value)),
      );
    });
    const offsets = [0, 8, 16, 24].flatMap((row) => [0, 8, 16, 24].map((k) => 4 * (36 * row + k)));
    expect(immediates(made.ptx, "ld\\.shared")).toEqual(offsets);
    expect(counts(made)).toEqual({
      builtin: 3,
      shiftLeft: 1,
      shiftRight: 1,
      and: 1,
      add: 2,
      mul: 1,
      load: 16,
      max: 15,
      store: 1,
    });
    // Scaled to bytes and added to the arena's start once.
    expect(matches(made.ptx, /add\.s32/g)).toBe(3);
    expect(matches(made.ptx, /shl\.b32/g)).toBe(2);
  });
});

describe("a tile of D from registers to shared memory", () => {
  it("costs one address for all stores", () => {
    const made = compiled(({ c }) => {
      const staged = shared(f32, [128, 136]);
      const warp = subdivide(tile({ M: 128, N: 128 }), { M: 64, N: 64 }, subgroup.index, 4);
      const lane = { M: subgroup.lane.div(4), N: subgroup.lane.rem(4).mul(2) };
      const pair = vector(c.loadAt(0), c.loadAt(1));
      for (const part of parallelise(warp, { M: 8, N: 8 }, 0, 1)) {
        staged.storeVectorAt(linearise(translate(part, lane), 136), pair);
      }
    });
    const eights = Array.from({ length: 8 }, (_, i) => 8 * i);
    expect(immediates(made.ptx, "st\\.shared\\.v2")).toEqual(
      eights.flatMap((row) => eights.map((column) => 4 * (136 * row + column))),
    );
    expect(counts(made)).toEqual({
      builtin: 2,
      load: 2,
      compose: 1,
      shiftRight: 2,
      shiftLeft: 3,
      and: 2,
      add: 3,
      mul: 1,
      store: 64,
    });
  });
});
