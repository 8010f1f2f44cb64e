/**
 * @file Faults planted in kernels as an author writes them. Whatever the order in which warps, lanes and asynchronous work
 * are taken, the simulator names the fault, the kernel, the block, a thread, and the author's lines: of both accesses
 * where there are two.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CompileError, type Device, f16, f32, i32, open, SimulationError, TraceError } from "tilewright";
import {
  assert,
  barrierInitFence,
  barriers,
  block,
  breakLoop,
  cluster,
  copyAsync,
  copyAsyncCommit,
  copyAsyncWait,
  grid,
  inout,
  input,
  type Kernel,
  kernel,
  loop,
  namedBarrier,
  output,
  proxyFence,
  roles,
  shared,
  subgroup,
  tensorMap,
  tensorStoreCommit,
  tensorStoreWait,
  thread,
  when,
} from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { orders } from "../mutation/mutants.ts";

const file = fileURLToPath(import.meta.url);
const source = readFileSync(file, "utf8").split("\n");
const threads = 64;

/** What a planted fault must be reported as. */
interface Planted {
  readonly name: string;
  /** Makes the kernel anew; each call is a trace of its own. */
  readonly kernel: Kernel;
  readonly blocks?: number;
  readonly arguments?: (device: Device) => Readonly<Record<string, unknown>>;
  /** Kinds of fault; which of several depends on the order. */
  readonly fault: readonly string[];
  /** Ends of the lines that the error must name, as `// …` marks them; alternatives by order in lists. */
  readonly lines: readonly string[] | readonly (readonly string[])[];
  readonly message?: RegExp;
  /** The only block unless given; undefined where there are several and the order decides. */
  readonly block?: readonly [number, number, number];
  /** Whether these can be the threads that the error names; their order is its own. */
  readonly threads?: (...threads: readonly number[]) => boolean;
}

/** The line of this file that ends in `// mark`. */
function lineOf(mark: string): number {
  const line = 1 + source.findIndex((text) => text.trimEnd().endsWith(`// ${mark}`));
  if (line === 0) throw new Error(`no line ends in // ${mark}`);
  return line;
}

const mirrored = () => thread.index.mul(-1).add(threads - 1);

const planted: readonly Planted[] = [
  {
    name: "a barrier left out between a write and another thread's read",
    kernel: kernel("left_out", {
      params: { y: output(i32) },
      block: threads,
      body({ y }) {
        const s = shared(i32, threads);
        s.store(thread.index, 0);
        block.barrier();
        s.store(thread.index, thread.index); // 1 writes
        y.store(thread.index, s.load(mirrored())); // 1 reads
      },
    }) as never,
    arguments: (device) => ({ y: device.array(i32, [threads]) }),
    fault: ["race"],
    lines: ["1 writes", "1 reads"],
    threads: (one, other) => one + other === threads - 1,
    message: /race on shared array/,
  },
  {
    name: "a buffer rewritten while others still read it",
    kernel: kernel("rewritten", {
      params: { y: inout(i32) },
      block: threads,
      body({ y }) {
        const s = shared(i32, threads);
        loop(3, (turn) => {
          s.store(thread.index, turn); // 2 writes
          block.barrier();
          y.store(thread.index, s.load(mirrored())); // 2 reads
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(i32, [threads]) }),
    fault: ["race"],
    lines: ["2 writes", "2 reads"],
  },
  {
    name: "two blocks that write one element",
    kernel: kernel("two_blocks", {
      params: { y: output(i32) },
      block: threads,
      body({ y }) {
        y.store(thread.index, block.id.x); // 3 writes
      },
    }) as never,
    blocks: 2,
    arguments: (device) => ({ y: device.array(i32, [threads]) }),
    fault: ["race"],
    lines: ["3 writes", "3 writes"],
    message: /race on array y/,
  },
  {
    name: "a block that reads what another writes",
    kernel: kernel("across_blocks", {
      params: { x: inout(i32), y: output(i32) },
      block: threads,
      body({ x, y }) {
        const own = block.id.x.mul(threads).add(thread.index);
        x.store(own, thread.index); // 4 writes
        block.barrier();
        const other = own.add(threads).floorMod(grid.size.x.mul(threads));
        y.store(own, x.load(other)); // 4 reads
      },
    }) as never,
    blocks: 2,
    arguments: (device) => ({ x: device.array(i32, [2 * threads]), y: device.array(i32, [2 * threads]) }),
    fault: ["race"],
    lines: ["4 writes", "4 reads"],
    message: /of another block/,
  },
  {
    name: "a load beyond the end",
    kernel: kernel("beyond", {
      params: { x: input(f32), y: output(f32) },
      block: threads,
      body({ x, y }) {
        const i = block.id.x.mul(threads).add(thread.index);
        y.store(i, x.load(i.add(1))); // 5 reads
      },
    }) as never,
    blocks: 2,
    arguments: (device) => ({ x: device.array(f32, [2 * threads]), y: device.array(f32, [2 * threads]) }),
    fault: ["outOfBounds"],
    lines: ["5 reads"],
    message: /block \(1, 0, 0\): thread 63: element 128 of array x, which has 128 at/,
    block: [1, 0, 0],
  },
  {
    name: "a store before the start",
    kernel: kernel("before", {
      params: { y: output(f32) },
      block: threads,
      body({ y }) {
        y.store(thread.index.sub(1), 1); // 6 writes
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["outOfBounds"],
    lines: ["6 writes"],
    threads: (...at) => at.length === 1 && at[0] === 0,
    message: /thread 0: element -1 of array y/,
  },
  {
    name: "a store beyond shared memory",
    kernel: kernel("beyond_shared", {
      params: {},
      block: threads,
      body() {
        const s = shared(f32, threads - 1);
        s.store(thread.index, 1); // 7 writes
      },
    }) as never,
    fault: ["outOfBounds"],
    lines: ["7 writes"],
    message: /thread 63: element 63 of shared array/,
  },
  {
    name: "a vector that is not aligned",
    kernel: kernel("misaligned", {
      params: { x: input(f32), y: output(f32) },
      block: threads,
      body({ x, y }) {
        y.store(thread.index, x.loadVectorAt(4, thread.index).elements()[0]); // 8 reads
      },
    }) as never,
    arguments: (device) => ({ x: device.array(f32, [4 * threads]), y: device.array(f32, [threads]) }),
    fault: ["misaligned"],
    lines: ["8 reads"],
  },
  {
    name: "shared memory read before anybody has written it",
    kernel: kernel("unwritten", {
      params: { y: output(f32) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads);
        when(thread.index.lt(threads / 2), () => s.store(thread.index, 1));
        block.barrier();
        y.store(thread.index, s.load(thread.index)); // 9 reads
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["unwrittenShared"],
    lines: ["9 reads"],
    threads: (...at) => at.length === 1 && at[0] >= threads / 2,
    message: /where nothing was written/,
  },
  {
    name: "a block barrier in a loop of another length for each thread",
    kernel: kernel("divergent_loop", {
      params: {},
      block: threads,
      body() {
        const wait = (): void => block.barrier(); // 10 waits
        loop(thread.index.floorMod(3), wait); // 10 loops
      },
    }) as never,
    fault: ["divergentBarrier"],
    lines: ["10 waits", "10 loops"],
  },
  {
    name: "a block barrier in some turns of some threads",
    kernel: kernel("divergent_turns", {
      params: { x: input(i32) },
      block: threads,
      body({ x }) {
        loop(4, (turn) => {
          const enough = x.load(thread.index).le(turn);
          when(enough, () => breakLoop()); // 11 leaves
          block.barrier(); // 11 waits
        });
      },
    }) as never,
    arguments: (device) => ({
      x: device.array(
        i32,
        [threads],
        Array.from({ length: threads }, (_, i) => i % 3),
      ),
    }),
    fault: ["divergentBarrier"],
    lines: ["11 waits", "11 leaves"],
  },
  {
    name: "a shuffle in a branch that not all lanes take",
    kernel: kernel("divergent_shuffle", {
      params: { y: inout(f32) },
      block: threads,
      body({ y }) {
        const even = thread.index.floorMod(2).eq(0);
        const sum = (): void => y.store(thread.index, subgroup.sum(y.load(thread.index))); // 12 sums
        when(even, sum); // 12 branches
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["divergentCollective"],
    lines: ["12 sums", "12 branches"],
  },
  {
    name: "a named barrier that too few threads reach",
    kernel: kernel("too_few", {
      params: {},
      block: threads,
      body() {
        when(subgroup.index.eq(0), () => {
          namedBarrier.sync(1, threads); // 13 waits
        });
      },
    }) as never,
    fault: ["deadlock"],
    lines: ["13 waits"],
    message: /no thread can go on: 1 subgroup waits for named barrier 1 \(32 of 64 threads\)/,
  },
  {
    name: "a barrier in memory that nobody arrives at",
    kernel: kernel("nobody", {
      params: {},
      block: threads,
      body() {
        const full = barriers(1);
        when(thread.index.eq(0), () => {
          full.initialise(0, 1);
          barrierInitFence();
        });
        block.barrier();
        full.wait(0, 0); // 14 waits
      },
    }) as never,
    fault: ["deadlock"],
    lines: ["14 waits"],
    message: /0 of 1 arrivals/,
  },
  {
    name: "roles that wait for each other",
    kernel: kernel("each_other", {
      params: {},
      block: 256,
      body() {
        const [here, there] = [barriers(1), barriers(1)];
        when(thread.index.eq(0), () => {
          here.initialise(0, 128);
          there.initialise(0, 128);
          barrierInitFence();
        });
        block.barrier();
        roles([
          {
            warpgroups: 1,
            body: () => {
              here.wait(0, 0); // 15 waits
              there.arrive(0);
            },
          },
          {
            warpgroups: 1,
            body: () => {
              there.wait(0, 0); // 15 waits too
              here.arrive(0);
            },
          },
        ]);
      },
    }) as never,
    fault: ["deadlock"],
    lines: ["15 waits", "15 waits too"],
  },
  {
    name: "an asynchronous copy used before it is waited for",
    kernel: kernel("in_flight", {
      params: { x: input(f32), y: output(f32) },
      block: threads,
      body({ x, y }) {
        const s = shared(f32, threads);
        copyAsync(s, thread.index, x, thread.index, 1); // 16 copies
        copyAsyncCommit();
        y.store(thread.index, s.load(thread.index)); // 16 reads
        copyAsyncWait(0);
      },
    }) as never,
    arguments: (device) => ({ x: device.array(f32, [threads]), y: device.array(f32, [threads]) }),
    fault: ["inFlight"],
    lines: ["16 copies", "16 reads"],
    message: /still under way/,
  },
  {
    name: "another thread's asynchronous copy, without a barrier after its wait",
    kernel: kernel("not_shared_yet", {
      params: { x: input(f32), y: output(f32) },
      block: threads,
      body({ x, y }) {
        const s = shared(f32, threads);
        copyAsync(s, thread.index, x, thread.index, 1); // 17 copies
        copyAsyncCommit();
        copyAsyncWait(0);
        y.store(thread.index, s.load(mirrored())); // 17 reads
      },
    }) as never,
    arguments: (device) => ({ x: device.array(f32, [threads]), y: device.array(f32, [threads]) }),
    fault: ["race", "inFlight", "unwrittenShared"],
    lines: [["17 copies", "17 reads"], ["17 reads"]],
  },
  {
    name: "a tensor store without a fence between the generic writes and it",
    kernel: kernel("no_proxy_fence", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1); // 18 writes
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 18 stores
          tensorStoreCommit();
          tensorStoreWait(0);
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["proxy"],
    lines: ["18 writes", "18 stores"],
    message: /proxyFence/,
  },
  {
    name: "a tensor store clipped within the 16 bytes that the engine writes at once",
    kernel: kernel("clipped_within_a_unit", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 30 stores
          tensorStoreCommit();
          tensorStoreWait(0);
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads - 2]) }),
    fault: ["outOfBounds"],
    lines: ["30 stores"],
    message: /lines of 248 bytes, no multiple of 16/,
  },
  {
    name: "a tensor store whose source is rewritten at once",
    kernel: kernel("rewritten_source", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 19 stores
          tensorStoreCommit();
        });
        block.barrier();
        s.store(thread.index, 2); // 19 writes
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["race", "inFlight"],
    lines: ["19 stores", "19 writes"],
  },
  {
    name: "a block that ends while a tensor store still reads its shared memory",
    kernel: kernel("ended_early", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 23 stores
          tensorStoreCommit();
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["inFlight"],
    lines: ["23 stores"],
    threads: (...at) => at.length === 1 && at[0] === 0,
    message: /the block ends while the tensorStore at .* by thread 0 may still read/,
  },
  {
    name: "a tensor store whose group is still open when its block ends",
    kernel: kernel("ended_open", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 24 stores
          tensorStoreWait(0);
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["inFlight"],
    lines: ["24 stores"],
    message: /the block ends/,
  },
  {
    name: "a wait for one tensor store of two",
    kernel: kernel("one_of_two", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, 2 * threads, 128);
        s.store(thread.index, 1);
        s.store(thread.index.add(threads), 2);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]);
          tensorStoreCommit();
          y.store(s, threads, [threads]); // 25 stores
          tensorStoreCommit();
          tensorStoreWait(1, { read: true });
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [2 * threads]) }),
    fault: ["inFlight"],
    lines: ["25 stores"],
  },
  {
    name: "a tensor store's target read after a wait for its source alone",
    kernel: kernel("source_alone", {
      params: { y: tensorMap(f32, [threads]), target: input(f32), z: output(f32) },
      block: threads,
      body({ y, target, z }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 26 stores
          tensorStoreCommit();
          tensorStoreWait(0, { read: true });
          z.store(0, target.load(3)); // 26 reads
        });
      },
    }) as never,
    arguments: (device) => {
      const y = device.array(f32, [threads]);
      return { y, target: y, z: device.array(f32, [1]) };
    },
    fault: ["race"],
    lines: ["26 stores", "26 reads"],
    threads: (...at) => at.length === 1 && at[0] === 0,
    message: /race on array target: the tensorStore at .* wrote what thread 0 reads/,
  },
  {
    name: "a tensor store's target read by another thread that nobody told",
    kernel: kernel("nobody_told", {
      params: { y: tensorMap(f32, [threads]), target: input(f32), z: output(f32) },
      block: threads,
      body({ y, target, z }) {
        const s = shared(f32, threads, 128);
        s.store(thread.index, 1);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 27 stores
          tensorStoreCommit();
        });
        block.barrier();
        when(thread.index.eq(0), () => tensorStoreWait(0));
        when(thread.index.eq(40), () => z.store(0, target.load(3))); // 27 reads
      },
    }) as never,
    arguments: (device) => {
      const y = device.array(f32, [threads]);
      return { y, target: y, z: device.array(f32, [1]) };
    },
    fault: ["race"],
    lines: ["27 stores", "27 reads"],
  },
  {
    name: "two tensor stores to one place without a wait between",
    kernel: kernel("stored_twice", {
      params: { y: tensorMap(f32, [threads]) },
      block: threads,
      body({ y }) {
        const s = shared(f32, 2 * threads, 128);
        s.store(thread.index, 1);
        s.store(thread.index.add(threads), 2);
        proxyFence();
        block.barrier();
        when(thread.index.eq(0), () => {
          y.store(s, 0, [0]); // 28 stores
          tensorStoreCommit();
          tensorStoreWait(0, { read: true });
          y.store(s, threads, [8]); // 28 stores again
          tensorStoreCommit();
          tensorStoreWait(0, { read: true });
        });
      },
    }) as never,
    arguments: (device) => ({ y: device.array(f32, [threads]) }),
    fault: ["race"],
    lines: ["28 stores", "28 stores again"],
  },
  {
    name: "an asynchronous copy of which more counts than it moves",
    kernel: kernel("more_counts", {
      params: { x: input(f32) },
      block: threads,
      body({ x }) {
        const s = shared(f32, threads);
        const left = thread.index.mul(-1).add(threads).mul(4);
        copyAsync(s, thread.index, x, thread.index, 1, { validBytes: left }); // 29 copies
        copyAsyncCommit();
        copyAsyncWait(0);
      },
    }) as never,
    arguments: (device) => ({ x: device.array(f32, [threads]) }),
    fault: ["outOfBounds"],
    lines: ["29 copies"],
    message: /an asynchronous copy of 4 bytes of which \d+ count/,
  },
  {
    name: "more bytes announced than copies bring",
    kernel: kernel("too_many_bytes", {
      params: { x: tensorMap(f32, [threads]) },
      block: threads,
      body({ x }) {
        const s = shared(f32, threads, 128);
        const full = barriers(1);
        when(thread.index.eq(0), () => {
          full.initialise(0, 1);
          barrierInitFence();
        });
        block.barrier();
        when(thread.index.eq(0), () => {
          full.arriveExpect(0, x.boxBytes + 16); // 20 announces
          x.load(s, 0, [0], { barriers: full, index: 0 });
        });
        full.wait(0, 0); // 20 waits
      },
    }) as never,
    arguments: (device) => ({ x: device.array(f32, [threads]) }),
    fault: ["expectedBytes"],
    lines: ["20 announces", "20 waits"],
    message: /16 bytes that were announced/,
  },
  {
    name: "an assertion that does not hold",
    kernel: kernel("asserted", {
      params: { x: input(f16), y: output(f16) },
      block: threads,
      body({ x, y }) {
        const value = x.load(thread.index);
        assert(value.lt(50), "values are small"); // 21 asserts
        y.store(thread.index, value);
      },
    }) as never,
    arguments: (device) => ({
      x: device.array(
        f16,
        [threads],
        Array.from({ length: threads }, (_, i) => i),
      ),
      y: device.array(f16, [threads]),
    }),
    fault: ["assert"],
    lines: ["21 asserts"],
    message: /assertion failed: values are small/,
  },
  {
    name: "another block's shared memory, cleared without a cluster barrier",
    kernel: kernel("cluster_race", {
      params: {},
      block: threads,
      cluster: 2,
      body() {
        const full = barriers(1);
        when(thread.index.eq(0), () => {
          full.initialise(0, 1); // 22 initialises
          barrierInitFence();
        });
        block.barrier();
        when(thread.index.eq(0), () => {
          full.arrive(0, block.id.x.xor(1)); // 22 arrives
        });
        cluster.barrier();
      },
    }) as never,
    blocks: 2,
    fault: ["race", "barrierPhase", "proxy"],
    lines: [["22 arrives", "22 initialises"], ["22 arrives"]],
  },
];

async function faultOf(
  { kernel: faulty, blocks = 1, arguments: args }: Planted,
  schedule: (typeof orders)[number],
): Promise<SimulationError> {
  await using device = await open({ kind: "simulator", simulator: { schedule } });
  try {
    await device.run(faulty, { blocks, args: (args?.(device) ?? {}) as never });
    await device.sync();
  } catch (error) {
    if (error instanceof SimulationError) return error;
    throw error;
  }
  throw new Error(`${faulty.name}: no fault was found`);
}

describe.each(planted)("$name", (plan) => {
  it.each(orders.map((order) => [JSON.stringify(order), order] as const))(
    "in the order %s",
    async (_, order) => {
      const error = await faultOf(plan, order);
      const { message, fault, details } = error;
      expect(plan.fault, message).toContain(fault);
      expect(details.kernel).toBe(plan.kernel.name);
      expect(message).toContain(`kernel ${plan.kernel.name}, block (${details.block.join(", ")})`);
      const only = (plan.blocks ?? 1) === 1 ? ([0, 0, 0] as const) : undefined;
      const where = plan.block ?? only;
      if (where !== undefined) expect(details.block).toEqual(where);
      expect(details.threads.length).toBeGreaterThan(0);
      for (const at of details.threads) expect(at).toBeLessThan(256);
      if (plan.threads !== undefined) expect(plan.threads(...details.threads), message).toBe(true);
      if (plan.message !== undefined) expect(message).toMatch(plan.message);
      const named = details.positions.map((position) => position?.line);
      for (const position of details.positions) {
        expect(position?.file).toBe(file);
        expect(message).toContain(`${file}:${position?.line}:`);
      }
      const choices = (
        typeof plan.lines[0] === "string" ? [plan.lines] : plan.lines
      ) as readonly (readonly string[])[];
      const sorted = (lines: readonly (number | undefined)[]) => [...lines].sort();
      expect(
        choices.map((marks) => sorted(marks.map(lineOf))),
        message,
      ).toContainEqual(sorted(named));
    },
  );
});

/** Divergence that the conditions show is found before anything runs, on every target. */
describe("a block barrier that not all threads reach", () => {
  const divergent: readonly (readonly [string, () => void, readonly string[]])[] = [
    [
      "in a branch on the thread's index",
      () => {
        const first = thread.index.lt(40);
        when(first, () => block.barrier()); // branch and barrier
      },
      ["branch and barrier", "branch and barrier"],
    ],
    [
      "in both halves of a branch on the warp",
      () => {
        const chosen = subgroup.index.eq(0);
        const one = (): void => block.barrier(); // either barrier
        when(chosen, one).otherwise(() => block.barrier()); // the branch
      },
      ["either barrier", "the branch"],
    ],
  ];
  it.each(divergent)("%s", async (_, body, marks) => {
    await using device = await open("simulator");
    const error = await device.compile(kernel("divergent", { params: {}, block: threads, body })).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(CompileError);
    const { message, positions } = error as CompileError;
    expect(message).toMatch(/kernel divergent: a block barrier under a condition that differs/);
    expect(positions.map(({ line }) => line)).toEqual(marks.map(lineOf));
  });
});

describe("a comparison in a JavaScript `if`", () => {
  it("is found when the kernel is traced, at the comparison", async () => {
    await using device = await open("simulator");
    const tested = kernel("tested", {
      params: { y: output(i32) },
      block: threads,
      body({ y }) {
        const below: unknown = thread.index.lt(block.id.x); // compares
        if (below) y.store(thread.index, 1);
      },
    });
    const args = { y: device.array(i32, [threads]) };
    const error = await device.run(tested, { blocks: 1, args }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(TraceError);
    const { message, positions } = error as TraceError;
    expect(message).toContain("kernel tested: nothing uses this comparison");
    expect(positions.map((position) => [position?.file, position?.line])).toEqual([
      [file, lineOf("compares")],
    ]);
    expect(message).toContain(`${file}:${lineOf("compares")}:`);
  });
});

describe("a device after a fault", () => {
  it("tells it once, then names it in what is asked next", async () => {
    const device = await open("simulator");
    const [plan] = planted;
    const launch = () => device.run(plan!.kernel, { blocks: 1, args: plan!.arguments!(device) as never });
    await launch();
    await expect(device.sync()).rejects.toThrow(SimulationError);
    await expect(launch().then(() => device.sync())).rejects.toThrow(/left_out/);
    device.dispose();
  });

  it("has none where the same kernels are right", async () => {
    for (const schedule of orders) {
      await using device = await open({ kind: "simulator", simulator: { schedule } });
      const right = kernel("right", {
        params: { x: input(f32), y: output(f32) },
        block: threads,
        body({ x, y }) {
          const s = shared(f32, threads);
          loop(3, () => {
            copyAsync(s, thread.index, x, thread.index, 1);
            copyAsyncCommit();
            copyAsyncWait(0);
            block.barrier();
            y.store(thread.index, s.load(mirrored()));
            block.barrier();
          });
        },
      });
      const x = device.array(
        f32,
        [threads],
        Array.from({ length: threads }, (_, i) => i),
      );
      const y = device.array(f32, [threads]);
      await device.run(right, { blocks: 1, args: { x, y } });
      expect(await y.item(3)).toBe(threads - 4);
    }
  });
});
