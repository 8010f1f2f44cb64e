/** @file Threads working together: reductions, shuffles, votes; and random numbers by counter. */
import {
  bf16,
  block,
  f16,
  f32,
  f64,
  i32,
  i64,
  input,
  kernel,
  normalPair,
  output,
  philox,
  type ReductionName,
  subgroup,
  thread,
  u32,
  u64,
  uniform,
  when,
} from "tilewright/lang";
import { expect } from "vitest";
import { integers } from "../../support/random.ts";
import { type ConformanceCase, expectClose, expectSame, poisoned } from "../table.ts";

const count = (length: number): number[] => Array.from({ length }, (_, position) => position);

type Reduced = typeof i32;
const folds: { readonly [N in ReductionName]: (a: number, b: number) => number } = {
  add: (a, b) => a + b,
  min: (a, b) => Math.min(a, b),
  max: (a, b) => Math.max(a, b),
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

function reductionCase(given: { readonly name: string; readonly class: string }): ConformanceCase {
  const type = given as Reduced;
  const names: readonly ReductionName[] =
    given.class === "float" ? ["add", "min", "max"] : ["add", "min", "max", "and", "or", "xor"];
  return {
    name: `reductions of blocks of ${given.name}`,
    needs: (facts) => facts.subgroupOperations && facts.arithmetic.has(type.name),
    async run(device) {
      const { width } = device.facts.subgroup;
      for (const threads of [width, 2 * width, 5 * width, 1024].filter(
        (size) => size <= device.facts.limits.threadsPerBlock,
      )) {
        for (const name of names) {
          const reduce = kernel(`reduce_${name}`, {
            params: { x: input(type), y: output(type), z: output(type) },
            block: threads,
            body({ x, y, z }) {
              const mine = x.load(block.id.x.mul(threads).add(thread.index));
              // Twice: the second must not disturb the first.
              const first = block.reduce(name, mine);
              const second = block.reduce(name, first.mul(0).add(mine));
              when(thread.index.eq(threads - 1), () => y.store(block.id.x, first));
              when(thread.index.eq(0), () => z.store(block.id.x, second));
            },
          });
          const values = integers(2 * threads, threads, 0, 3);
          const wide = type.name === ("i64" as string) || type.name === ("u64" as string);
          const x = device.array(type, [2 * threads], (wide ? values.map(BigInt) : values) as number[]);
          const [y, z] = [poisoned(device, type, [2]), poisoned(device, type, [2])];
          await device.run(reduce, { blocks: 2, args: { x, y, z } });
          const expected = [0, 1].map((which) =>
            values.slice(which * threads, (which + 1) * threads).reduce(folds[name]),
          );
          // Sums of small integers are exact in every type up to 2^8, bf16's reach.
          const shown = type.name === ("bf16" as string) ? expected.filter((sum) => sum <= 256) : expected;
          if (shown.length < expected.length) continue;
          expectSame(
            Array.from(await y.read(), Number),
            expected,
            (at) => `${name} of ${threads} threads, block ${at}`,
          );
          expectSame(
            Array.from(await z.read(), Number),
            expected,
            (at) => `${name} again of ${threads} threads, block ${at}`,
          );
        }
      }
    },
  };
}

const shuffles: ConformanceCase = {
  name: "shuffles, votes, ballots, one elected lane",
  needs: (facts) => facts.subgroupOperations && facts.subgroup.width <= 32,
  async run(device) {
    const { width } = device.facts.subgroup;
    const exchange = kernel("exchange", {
      params: { y: output(i32, 2), z: output(u32, 2) },
      block: 2 * width,
      body({ y, z }) {
        const { lane, index } = subgroup;
        const mine = lane.mul(10).add(index.mul(1000));
        const results = [
          subgroup.shuffle(mine, lane.add(3).rem(width)),
          subgroup.shuffleUp(mine, 1),
          subgroup.shuffleDown(mine, 2),
          subgroup.shuffleXor(mine, 1),
          subgroup.shuffleXor(mine, 3, 4),
        ];
        for (const [which, result] of results.entries()) y.store(which, thread.index, result);
        const odd = lane.and(1).eq(1);
        const votes = [
          subgroup.ballot(odd),
          subgroup.any(lane.eq(2)).to(u32),
          subgroup.all(lane.ge(0)).to(u32),
          subgroup.all(odd).to(u32),
          subgroup.sum(subgroup.electOne().to(u32)),
        ];
        for (const [which, vote] of votes.entries()) z.store(which, thread.index, vote);
      },
    });
    const [y, z] = [poisoned(device, i32, [5, 2 * width]), poisoned(device, u32, [5, 2 * width])];
    await device.run(exchange, { blocks: 1, args: { y, z } });
    const value = (id: number, lane: number): number => lane * 10 + Math.floor(id / width) * 1000;
    const lanes = [
      (l: number) => (l + 3) % width,
      (l: number) => (l >= 1 ? l - 1 : l),
      (l: number) => (l + 2 < width ? l + 2 : l),
      (l: number) => l ^ 1,
      (l: number) => l ^ 3,
    ];
    expectSame(
      await y.read(),
      lanes.flatMap((from) => count(2 * width).map((id) => value(id, from(id % width)))),
      (at) => `shuffle ${at}`,
    );
    const ballot = count(width).reduce((mask, lane) => (lane % 2 === 1 ? mask + 2 ** lane : mask), 0);
    expectSame(
      await z.read(),
      [ballot, 1, 1, 0, 1].flatMap((vote) => Array<number>(2 * width).fill(vote)),
      (at) => `vote ${at}`,
    );
  },
};

const randomWords: ConformanceCase = {
  name: "philox: the published vectors",
  async run(device) {
    const draw = kernel("draw", {
      params: { counter: input(u32), key: input(u32), y: output(u32) },
      block: 1,
      body({ counter, key, y }) {
        const words = philox(
          [counter.load(0), counter.load(1), counter.load(2), counter.load(3)],
          [key.load(0), key.load(1)],
        );
        for (const [which, word] of words.entries()) y.store(which, word);
      },
    });
    // Random123's kat_vectors, philox4x32 10.
    const vectors = [
      [
        [0, 0, 0, 0],
        [0, 0],
        [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
      ],
      [
        [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
        [0xffffffff, 0xffffffff],
        [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
      ],
      [
        [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
        [0xa4093822, 0x299f31d0],
        [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
      ],
    ] as const;
    for (const [counter, key, expected] of vectors) {
      const y = poisoned(device, u32, [4]);
      await device.run(draw, {
        blocks: 1,
        args: { counter: device.array(u32, [4], [...counter]), key: device.array(u32, [2], [...key]), y },
      });
      expectSame(await y.read(), expected);
    }
  },
};

const randomFloats: ConformanceCase = {
  name: "uniform and normal numbers from bits",
  async run(device) {
    const draw = kernel("draw_floats", {
      params: { a: input(u32), b: input(u32), u: output(f32), x: output(f32), y: output(f32) },
      block: 128,
      body({ a, b, u, x, y }) {
        const [first, second] = [a.load(thread.index), b.load(thread.index)];
        const [p, q] = normalPair(first, second);
        u.store(thread.index, uniform(first));
        x.store(thread.index, p);
        y.store(thread.index, q);
      },
    });
    const edges = [0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 30, 3 * 2 ** 30, 2 ** 24, 2 ** 32 - 256];
    const as = [...edges.flatMap((a) => edges.map(() => a)), ...integers(64, 1, 0, 2 ** 32)];
    const bs = [...edges.flatMap(() => edges), ...integers(64, 2, 0, 2 ** 32)];
    const [u, x, y] = [0, 1, 2].map(() => poisoned(device, f32, [128])) as [never, never, never];
    await device.run(draw, {
      blocks: 1,
      args: { a: device.array(u32, [128], as), b: device.array(u32, [128], bs), u, x, y },
    });
    const read = (array: { read(): Promise<Float32Array> }): Promise<Float32Array> => array.read();
    expectSame(
      await read(u),
      as.map((a) => Math.floor(a / 256) / 2 ** 24),
    );
    const radius = as.map((a) => Math.sqrt(-2 * Math.log(Math.fround(Math.fround(a) * 2 ** -32 + 2 ** -33))));
    const angle = bs.map(
      (b) => Math.floor(b / 2 ** 30) * (Math.PI / 2) + ((b % 2 ** 30) - 2 ** 29) * (Math.PI / 2 ** 31),
    );
    expectClose(
      await read(x),
      radius.map((r, at) => r * Math.cos(angle[at]!)),
      2e-6,
    );
    expectClose(
      await read(y),
      radius.map((r, at) => r * Math.sin(angle[at]!)),
      2e-6,
    );
    expect(Math.max(...(await read(x)))).toBeLessThan(6.8);
  },
};

export const collectiveCases: readonly ConformanceCase[] = [
  ...[i32, u32, i64, u64, f16, bf16, f32, f64].map(reductionCase),
  shuffles,
  randomWords,
  randomFloats,
];
