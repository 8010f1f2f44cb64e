/** @file Memory on a device: ranks and strides, vectors, shared arrays, tables, atomics, parameters by value. */
import type { DeviceArray, StorageType } from "tilewright";
import {
  bf16,
  block,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  index,
  inout,
  input,
  type Kernel,
  kernel,
  loop,
  output,
  select,
  shared,
  sharedArena,
  table,
  thread,
  toIndex,
  u8,
  u16,
  u32,
  u64,
  unpack,
  type Value,
  type VectorLanes,
  vector,
  when,
} from "tilewright/lang";
import { expect } from "vitest";
import { integers, normals } from "../../support/random.ts";
import { type ConformanceCase, expectSame, poisoned } from "../table.ts";

const count = (length: number): number[] => Array.from({ length }, (_, position) => position);
const storageTypes: readonly StorageType[] = [
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
];
const small = (type: StorageType, length: number, seed: number): number[] => {
  const values = integers(length, seed, type.class === "unsigned" ? 0 : -8, 9);
  return (type.bits === 64 && type.class !== "float" ? values.map(BigInt) : values) as number[];
};

function transposeCase(type: StorageType): ConformanceCase {
  return {
    name: `transpose through shared memory, ${type.name}`,
    needs: (facts) => facts.storage.has(type.name),
    async run(device) {
      const tile = 16;
      const transpose = kernel("transpose", {
        params: { x: input(type, 2), y: output(type, 2) },
        block: [tile, tile],
        body({ x, y }) {
          const held = shared(type, [tile, tile + 1]);
          const [row, column] = [block.id.y.mul(tile), block.id.x.mul(tile)];
          const [i, j] = [row.add(thread.y), column.add(thread.x)];
          when(i.lt(x.size(0)).and(j.lt(x.size(1))), () => held.store(thread.y, thread.x, x.load(i, j)));
          block.barrier();
          const [p, q] = [column.add(thread.y), row.add(thread.x)];
          when(p.lt(y.size(0)).and(q.lt(y.size(1))), () => y.store(p, q, held.load(thread.x, thread.y)));
        },
      });
      const [rows, columns] = [37, 21];
      const x = device.array(type, [rows, columns], small(type, rows * columns, 1));
      const y = poisoned(device, type, [columns, rows]);
      await device.run(transpose, { blocks: [2, 3], args: { x, y } as never });
      expectSame(await y.read(), await x.transposed.read());
    },
  };
}

function vectorCase(type: StorageType): ConformanceCase {
  return {
    name: `vector loads and stores of ${type.name}`,
    needs: (facts) => facts.storage.has(type.name),
    async run(device) {
      const widths = [2, 4, 8, 16].filter((lanes) => (lanes * type.bits) / 8 <= 16) as VectorLanes[];
      for (const lanes of widths) {
        const reverse = kernel("reverse_lanes", {
          params: { x: input(type), y: output(type) },
          block: 32,
          body({ x, y }) {
            const held = shared(type, 32 * lanes);
            const at = block.id.x.mul(32).add(thread.index);
            when(at.mul(lanes).lt(x.size()), () => {
              const loaded = x.loadVectorAt(lanes, at.mul(lanes));
              held.storeVectorAt(thread.index.mul(lanes), loaded);
              const again = held.loadVectorAt(lanes, thread.index.mul(lanes)).elements();
              y.storeVectorAt(at.mul(lanes), vector(...again.reverse()));
            });
          },
        });
        const length = lanes * 45;
        const values = small(type, length, lanes);
        const x = device.array(type, [length], values);
        const y = poisoned(device, type, [length]);
        await device.run(reverse, { blocks: 2, args: { x, y } as never });
        const given = await x.read();
        expectSame(
          await y.read(),
          count(length).map((at) => given[at - (at % lanes) + lanes - 1 - (at % lanes)]!),
        );
      }
    },
  };
}

const packed: ConformanceCase = {
  name: "packed halves: words seen as vectors, lane by lane arithmetic",
  needs: (facts) => facts.arithmetic.has("f16"),
  async run(device) {
    const halves = kernel("halves", {
      params: { x: input(f16), words: output(u32), y: output(f16) },
      block: 32,
      body({ x, words, y }) {
        const pair = x.loadVectorAt(2, thread.index.mul(2));
        const doubled = pair.add(pair).fma(2, 1);
        const word = doubled.bitcast(u32, 1);
        words.store(thread.index, word);
        const [low, high] = unpack(word, f16, 2).elements() as [Value<typeof f16>, Value<typeof f16>];
        y.storeAt(thread.index.mul(2), high);
        y.storeAt(thread.index.mul(2).add(1), low);
      },
    });
    const x = device.array(f16, [64], integers(64, 9, -50, 50));
    const [words, y] = [poisoned(device, u32, [32]), poisoned(device, f16, [64])];
    await device.run(halves, { blocks: 1, args: { x, words, y } });
    const expected = Array.from(await x.read(), (value) => value * 4 + 1);
    expectSame(
      await y.read(),
      count(64).map((at) => expected[at ^ 1]!),
    );
    const bits = new Uint16Array((await words.read()).buffer);
    expectSame(bits, await device.array(f16, [64], expected).readBits());
  },
};

function rankCase(rank: number): ConformanceCase {
  return {
    name: `rank ${rank}: sizes, strides, views`,
    async run(device) {
      const copy = kernel("copy_of_rank", {
        params: { x: input(i32, rank), y: output(i32, rank), sizes: output(i32) },
        block: 64,
        body({ x, y, sizes }) {
          const extents = count(rank).map((dimension) => x.size(dimension));
          const total = extents.reduce((product, extent) => product.mul(extent));
          loop({ from: thread.index, to: total, step: 64 }, (position) => {
            let rest = position;
            const at = extents.map((_, dimension) => {
              const below = extents
                .slice(dimension + 1)
                .reduce((product, extent) => product.mul(extent), rest.mul(0).add(1));
              const coordinate = rest.div(below);
              rest = rest.sub(coordinate.mul(below));
              return coordinate;
            });
            y.store(...at, x.load(...at));
          });
          when(thread.index.eq(0), () => {
            for (const [dimension, extent] of extents.entries()) sizes.store(dimension, extent);
          });
        },
      });
      const shape = [3, 2, 4, 2, 3, 2].slice(0, rank);
      const size = shape.reduce((product, extent) => product * extent, 1);
      const whole = device.array(i32, shape, count(size));
      const views: DeviceArray<typeof i32>[] = [whole];
      if (rank > 1)
        views.push(
          whole.permute(count(rank).reverse()),
          whole.slice(...shape.map((extent) => [1, extent] as const)),
        );
      if (rank > 1) views.push(whole.slice([], [0, undefined, 2]));
      for (const x of views) {
        const [y, sizes] = [poisoned(device, i32, x.shape), poisoned(device, i32, [rank])];
        await device.run(copy, { blocks: 1, args: { x, y, sizes } });
        expectSame(await y.read(), await x.read());
        expectSame(await sizes.read(), x.shape);
      }
    },
  };
}

const bare: ConformanceCase = {
  name: "rank 0 is bare storage at the view's first element",
  async run(device) {
    const gather = kernel("gather", {
      params: { x: input(f32, 0), y: output(f32), stride: index },
      block: 8,
      body: ({ x, y, stride }) => y.store(thread.index, x.loadAt(toIndex(thread.index).mul(stride))),
    });
    const matrix = device.array(f32, [8, 5], count(40));
    const y = poisoned(device, f32, [8]);
    await device.run(gather, { blocks: 1, args: { x: matrix.column(3), y, stride: 5 } });
    expectSame(await y.read(), await matrix.column(3).read());
  },
};

const overlay: ConformanceCase = {
  name: "views of one shared arena overlay each other",
  async run(device) {
    const overlaid = kernel("overlaid", {
      params: { y: output(u32) },
      block: 64,
      body({ y }) {
        const arena = sharedArena(64 * 4);
        const [words, bytes] = [arena.view(u32, 64), arena.view(u8, [64, 4])];
        words.store(thread.index, thread.index.to(u32).mul(0x01010101).add(0x03020100));
        block.barrier();
        const second = bytes.load(thread.index.xor(1), 2).to(u32);
        block.barrier();
        words.store(thread.index, second);
        block.barrier();
        y.store(thread.index, words.load(thread.index.xor(1)));
      },
    });
    const y = poisoned(device, u32, [64]);
    await device.run(overlaid, { blocks: 1, args: { y } });
    expectSame(
      await y.read(),
      count(64).map((at) => (at + 2) & 0xff),
    );
  },
};

const tables: ConformanceCase = {
  name: "constant tables of several types",
  needs: (facts) => facts.storage.has("i64"),
  async run(device) {
    const values = normals(37, 4).map((value) => Math.fround(value));
    const lookUp = kernel("look_up", {
      params: { y: output(f32), z: output(i64) },
      block: 37,
      body({ y, z }) {
        const [floats, wide] = [table(f32, values), table(i64, [5n, -(2n ** 40n)])];
        y.store(thread.index, floats.load(thread.index));
        z.store(thread.index, wide.load(thread.index.and(1)));
      },
    });
    const [y, z] = [poisoned(device, f32, [37]), poisoned(device, i64, [37])];
    await device.run(lookUp, { blocks: 1, args: { y, z } });
    expectSame(await y.read(), values);
    expectSame(
      await z.read(),
      count(37).map((at) => (at % 2 === 0 ? 5n : -(2n ** 40n))),
    );
  },
};

const scalars: ConformanceCase = {
  name: "numbers of every type by value",
  needs: (facts) => ["f16", "bf16", "f64", "i64"].every((name) => facts.arithmetic.has(name as "f16")),
  async run(device) {
    const given = {
      a: [f16, 0.1],
      b: [bf16, -3.3],
      c: [f32, 1e-42],
      d: [f64, 1 / 3],
      e: [i32, -(2 ** 31)],
      f: [u32, 2 ** 32 - 1],
      g: [i64, -(2n ** 63n)],
      h: [u64, 2n ** 64n - 1n],
      i: [index, 2 ** 40],
    } as const;
    const params = Object.fromEntries(Object.entries(given).map(([name, [type]]) => [name, type]));
    const stores = Object.fromEntries(
      Object.entries(given).map(([name, [type]]) => [
        `out_${name}`,
        output(type === index ? i64 : (type as typeof f32)),
      ]),
    );
    const byValue = kernel("by_value", {
      params: { ...params, ...stores },
      block: 1,
      body(args) {
        const all = args as unknown as Record<
          string,
          { store(at: number, value: Value<typeof i64>): void } & Value<typeof i64>
        >;
        for (const name of Object.keys(given))
          all[`out_${name}`]!.store(0, name === "i" ? all[name]!.to(i64) : all[name]!);
      },
    }) as unknown as Kernel;
    const outputs = Object.fromEntries(
      Object.entries(given).map(([name, [type]]) => [
        `out_${name}`,
        poisoned(device, (type === index ? i64 : type) as StorageType, [1]),
      ]),
    );
    const values = Object.fromEntries(Object.entries(given).map(([name, [, value]]) => [name, value]));
    await device.run(byValue, { blocks: 1, args: { ...values, ...outputs } as never });
    for (const [name, [type, value]] of Object.entries(given)) {
      const stored = await outputs[`out_${name}`]!.item();
      const expected =
        type === index
          ? BigInt(value)
          : await device.array(type as typeof f32, [1], [value as number]).item();
      expect([name, stored]).toEqual([name, expected]);
    }
  },
};

function atomicCase(type: typeof i32 | typeof u32 | typeof f32 | typeof u64): ConformanceCase {
  const names = [
    "add",
    "min",
    "max",
    "exchange",
    ...(type.class === "float" ? [] : ["and", "or", "xor"]),
  ] as const;
  return {
    name: `atomics of ${type.name}, global and shared`,
    needs: (facts) => facts.atomics.get("add")?.has(type.name) === true,
    async run(device) {
      const bins = 5;
      const available = names.filter((name) => device.facts.atomics.get(name)?.has(type.name) === true);
      for (const name of available) {
        const histogram = kernel(`atomic_${name}`, {
          params: { x: input(type), y: inout(type), z: inout(type), initial: type as typeof i32 },
          block: 64,
          body({ x, y, z, initial }) {
            const held = shared(type, bins);
            when(thread.index.lt(bins), () => held.store(thread.index, initial as never));
            block.barrier();
            const at = block.id.x.mul(64).add(thread.index);
            when(at.lt(x.size()), () => {
              y.atomicAt(name as "add", at.rem(bins), x.load(at));
              held.atomicAt(name as "add", at.rem(bins), x.load(at));
            });
            block.barrier();
            when(thread.index.lt(bins), () =>
              z.atomicAt(name as "add", thread.index, held.load(thread.index)),
            );
          },
        });
        const values = integers(150, 21, 1, 200);
        const initial = name === "min" || name === "and" ? 255 : 0;
        const cast = (list: readonly number[]): number[] =>
          (type.name === "u64" ? list.map(BigInt) : list) as number[];
        const [y, z] = [0, 1].map(() => device.array(type, [bins], cast(Array(bins).fill(initial)))) as [
          DeviceArray,
          DeviceArray,
        ];
        await device.run(histogram, {
          blocks: 3,
          args: { x: device.array(type, [150], cast(values)), y, z, initial: initial as never } as never,
        });
        const combine: Record<string, (a: number, b: number) => number> = {
          add: (a, b) => a + b,
          min: (a, b) => Math.min(a, b),
          max: (a, b) => Math.max(a, b),
          and: (a, b) => a & b,
          or: (a, b) => a | b,
          xor: (a, b) => a ^ b,
        };
        if (name === "exchange") {
          for (const [bin, stored] of Array.from((await y.read()) as ArrayLike<number>, Number).entries()) {
            expect(values.filter((_, at) => at % bins === bin)).toContain(stored);
          }
          continue;
        }
        const expected = count(bins).map((bin) =>
          values.filter((_, at) => at % bins === bin).reduce(combine[name]!, initial),
        );
        expectSame(
          Array.from((await y.read()) as ArrayLike<number>, Number),
          expected,
          (at) => `${name} ${at}`,
        );
        expectSame(
          Array.from((await z.read()) as ArrayLike<number>, Number),
          expected,
          (at) => `shared ${name} ${at}`,
        );
      }
    },
  };
}

const compareExchange: ConformanceCase = {
  name: "compare and exchange: threads take turns",
  needs: (facts) => facts.atomics.get("compareExchange")?.has("i32") === true,
  async run(device) {
    const claim = kernel("claim", {
      params: { slots: inout(i32), owner: output(i32), tries: output(i32) },
      block: 32,
      body({ slots, owner, tries }) {
        const id = thread.index.add(block.id.x.mul(32));
        const old = slots.compareExchangeAt(id.rem(7), -1, id);
        owner.store(id, select(old.eq(-1), id, old));
        const before = slots.atomicAt("add", 7, 1);
        tries.store(before, 1);
      },
    });
    const slots = device.array(i32, [8], [-1, -1, -1, -1, -1, -1, -1, 0]);
    const [owner, tries] = [poisoned(device, i32, [96]), poisoned(device, i32, [96])];
    await device.run(claim, { blocks: 3, args: { slots, owner, tries } });
    const final = await slots.read();
    expect(final[7]).toBe(96);
    for (const [id, seen] of (await owner.read()).entries()) {
      expect(final[id % 7]! % 7).toBe(id % 7);
      expect(seen).toBe(final[id % 7]);
    }
    expectSame(await tries.read(), Array<number>(96).fill(1));
  },
};

export const memoryCases: readonly ConformanceCase[] = [
  ...storageTypes.map(transposeCase),
  ...storageTypes.map(vectorCase),
  packed,
  ...[1, 2, 3, 4, 5, 6].map(rankCase),
  bare,
  overlay,
  tables,
  scalars,
  ...[i32, u32, f32, u64].map((type) => atomicCase(type as typeof i32)),
  compareExchange,
];
