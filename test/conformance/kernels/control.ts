/** @file Control flow on a device: loops, while, break, continue, branches, exit, variables. */
import {
  block,
  breakLoop,
  continueLoop,
  exit,
  f32,
  grid,
  i32,
  index,
  input,
  kernel,
  loop,
  loopWhile,
  output,
  select,
  thread,
  u32,
  variable,
  when,
} from "tilewright/lang";
import { integers, normals } from "../../support/random.ts";
import { type ConformanceCase, expectClose, expectSame, poisoned } from "../table.ts";

const count = (length: number): number[] => Array.from({ length }, (_, position) => position);

const rowSum: ConformanceCase = {
  name: "row_sum, the first example",
  async run(device) {
    const kernelOfSums = kernel("row_sum", {
      params: { x: input(f32, 2), y: output(f32) },
      block: 256,
      body({ x, y }) {
        const row = block.id.x;
        const sum = variable(f32, 0);
        loop({ from: thread.index, to: x.size(1), step: block.size }, (j) => {
          sum.value = sum.value.add(x.load(row, j));
        });
        const total = block.sum(sum.value);
        when(thread.index.eq(0), () => y.store(row, total));
      },
    });
    for (const [rows, columns] of [
      [1, 1],
      [3, 255],
      [5, 256],
      [2, 257],
      [4, 1031],
      [7, 0],
    ] as const) {
      const values = normals(rows * columns, rows + columns);
      const x = device.array(f32, [rows, columns], values);
      const y = poisoned(device, f32, [rows]);
      await device.run(kernelOfSums, { blocks: rows, args: { x, y } });
      const rowOf = (row: number): number[] =>
        values.slice(row * columns, (row + 1) * columns).map(Math.fround);
      const expected = count(rows).map((row) => rowOf(row).reduce((sum, value) => sum + value, 0));
      expectClose(
        await y.read(),
        expected,
        (row) => 1e-6 * rowOf(row).reduce((sum, value) => sum + Math.abs(value), 1),
      );
      // The transposed matrix, read along its strides.
      if (columns === 0) continue;
      const z = poisoned(device, f32, [columns]);
      await device.run(kernelOfSums, { blocks: columns, args: { x: x.transposed, y: z } });
      const columnOf = (column: number): number[] =>
        count(rows).map((row) => Math.fround(values[row * columns + column]!));
      expectClose(
        await z.read(),
        count(columns).map((column) => columnOf(column).reduce((sum, value) => sum + value, 0)),
        1e-5,
      );
    }
  },
};

const collatz: ConformanceCase = {
  name: "while: a different number of turns in every thread",
  async run(device) {
    const steps = kernel("collatz", {
      params: { x: input(u32), y: output(u32) },
      block: 64,
      body({ x, y }) {
        const at = block.id.x.mul(64).add(thread.index);
        when(at.lt(x.size()), () => {
          const value = variable(u32, x.load(at));
          const turns = variable(u32, 0);
          loopWhile(
            () => value.value.ne(1),
            () => {
              const odd = value.value.and(1).eq(1);
              value.value = select(odd, value.value.mul(3).add(1), value.value.shiftRight(1));
              turns.value = turns.value.add(1);
            },
          );
          y.store(at, turns.value);
        });
      },
    });
    const values = integers(131, 5, 1, 1000);
    const x = device.array(u32, [131], values);
    const y = poisoned(device, u32, [131]);
    await device.run(steps, { blocks: 3, args: { x, y } });
    const oracle = (start: number): number => {
      let turns = 0;
      for (let value = start; value !== 1; turns++) value = value % 2 === 1 ? 3 * value + 1 : value / 2;
      return turns;
    };
    expectSame(await y.read(), values.map(oracle));
  },
};

const jumps: ConformanceCase = {
  name: "break and continue, in nested loops and divergent branches",
  async run(device) {
    const search = kernel("jumps", {
      params: { x: input(i32, 2), y: output(i32) },
      block: 32,
      body({ x, y }) {
        const row = block.id.x.mul(32).add(thread.index);
        when(row.ge(x.size(0)), () => exit());
        const sum = variable(i32, 0);
        loop(x.size(1), (outer) => {
          const first = x.load(row, outer);
          when(first.rem(5).eq(0), () => continueLoop());
          when(first.gt(90), () => breakLoop());
          loop({ from: outer, to: x.size(1), step: 2 }, (inner) => {
            const second = x.load(row, inner);
            when(second.lt(first), () => {
              when(second.rem(2).eq(0), () => breakLoop());
              sum.value = sum.value.add(1000);
            });
            sum.value = sum.value.add(second);
          });
          sum.value = sum.value.mul(3);
        });
        y.store(row, sum.value);
      },
    });
    const [rows, columns] = [45, 13];
    const values = integers(rows * columns, 11, 0, 100);
    const y = poisoned(device, i32, [rows]);
    await device.run(search, { blocks: 2, args: { x: device.array(i32, [rows, columns], values), y } });
    const oracle = (row: number): number => {
      const at = (column: number): number => values[row * columns + column]!;
      let sum = 0;
      for (let outer = 0; outer < columns; outer++) {
        const first = at(outer);
        if (first % 5 === 0) continue;
        if (first > 90) break;
        for (let inner = outer; inner < columns; inner += 2) {
          const second = at(inner);
          if (second < first) {
            if (second % 2 === 0) break;
            sum = (sum + 1000) | 0;
          }
          sum = (sum + second) | 0;
        }
        sum = Math.imul(sum, 3);
      }
      return sum;
    };
    expectSame(await y.read(), count(rows).map(oracle));
  },
};

const branches: ConformanceCase = {
  name: "when and otherwise, nested, with variables carried out",
  async run(device) {
    const classify = kernel("branches", {
      params: { x: input(f32), y: output(i32) },
      block: 96,
      body({ x, y }) {
        const at = thread.index.add(block.id.x.mul(96));
        const kind = variable(i32, -1);
        when(at.lt(x.size()), () => {
          const value = x.load(at);
          when(value.isNaN(), () => {
            kind.value = 0;
          }).otherwise(() => {
            when(value.lt(0), () => {
              kind.value = value.lt(-1).and(true).to(i32).add(1);
            }).otherwise(() => {
              when(value.gt(1).or(value.eq(0)), () => {
                kind.value = 3;
              });
            });
          });
          y.store(at, kind.value);
        });
      },
    });
    const values = [...normals(190, 3), NaN, 0, -0, Infinity, -Infinity];
    const y = poisoned(device, i32, [values.length]);
    await device.run(classify, { blocks: 3, args: { x: device.array(f32, [values.length], values), y } });
    const oracle = (value: number): number => {
      if (Number.isNaN(value)) return 0;
      if (value < 0) return value < -1 ? 2 : 1;
      return value > 1 || value === 0 ? 3 : -1;
    };
    expectSame(
      await y.read(),
      values.map((value) => oracle(Math.fround(value))),
    );
  },
};

const order: ConformanceCase = {
  name: "values keep what they were; variables and memory change behind them",
  async run(device) {
    const ordered = kernel("ordered", {
      params: { x: output(i32), n: i32 },
      block: 1,
      body({ x, n }) {
        const v = variable(i32, n);
        const before = v.value;
        v.value = before.add(1);
        const between = v.value;
        loop(3, (turn) => {
          v.value = v.value.mul(2).add(turn);
        });
        x.store(0, before);
        x.store(1, between);
        x.store(2, v.value);
      },
    });
    const x = poisoned(device, i32, [3]);
    await device.run(ordered, { blocks: 1, args: { x, n: 7 } });
    expectSame(await x.read(), [7, 8, ((8 * 2 + 0) * 2 + 1) * 2 + 2]);
    const swap = kernel("swap", {
      params: { x: output(i32) },
      block: 1,
      body({ x }) {
        const [a, b] = [variable(i32, 1), variable(i32, 1)];
        loop(10, () => {
          const old = a.value;
          a.value = b.value;
          b.value = old.add(b.value);
        });
        x.store(0, b.value);
      },
    });
    const fibonacci = poisoned(device, i32, [1]);
    await device.run(swap, { blocks: 1, args: { x: fibonacci } });
    expectSame(await fibonacci.read(), [144]);
  },
};

const counters: ConformanceCase = {
  name: "loops that count in i32, u32 and index, by steps and from run-time bounds",
  async run(device) {
    for (const type of [i32, u32, index] as const) {
      const counting = kernel("counting", {
        params: {
          x: output(i32),
          from: type as typeof i32,
          to: type as typeof i32,
          step: type as typeof i32,
        },
        block: 1,
        body({ x, from, to, step }) {
          const turns = variable(i32, 0);
          const last = variable(i32, -1);
          loop({ from, to, step }, (counter) => {
            turns.value = turns.value.add(1);
            last.value = counter.to(i32);
          });
          x.store(0, turns.value);
          x.store(1, last.value);
        },
      });
      for (const [from, to, step] of [
        [0, 10, 1],
        [3, 10, 4],
        [5, 5, 1],
        [7, 2, 1],
        [0, 1, 100],
      ] as const) {
        const x = poisoned(device, i32, [2]);
        await device.run(counting, { blocks: 1, args: { x, from, to, step } });
        const visited: number[] = [];
        for (let counter: number = from; counter < to; counter += step) visited.push(counter);
        expectSame(await x.read(), [visited.length, visited.at(-1) ?? -1]);
      }
    }
  },
};

const gridCase: ConformanceCase = {
  name: "grids and blocks of three dimensions",
  async run(device) {
    const where = kernel("where", {
      params: { x: output(i32, 3) },
      block: [4, 3, 2],
      body({ x }) {
        const [i, j, k] = [
          block.id.x.mul(4).add(thread.x),
          block.id.y.mul(3).add(thread.y),
          block.id.z.mul(2).add(thread.z),
        ];
        const inside = i
          .lt(x.size(0))
          .and(j.lt(x.size(1)))
          .and(k.lt(x.size(2)));
        const blocks = grid.size.x.mul(100).add(grid.size.y.mul(10)).add(grid.size.z);
        when(inside, () => x.store(i, j, k, thread.index.mul(1000).add(blocks)));
      },
    });
    const shape = [7, 5, 3];
    const x = poisoned(device, i32, shape);
    await device.run(where, { blocks: [2, 2, 2], args: { x } });
    const expected = count(105).map((position) => {
      const [i, j, k] = [Math.floor(position / 15), Math.floor(position / 3) % 5, position % 3];
      return ((i % 4) + 4 * (j % 3) + 12 * (k % 2)) * 1000 + 222;
    });
    expectSame(await x.read(), expected);
  },
};

export const controlCases: readonly ConformanceCase[] = [
  rowSum,
  collatz,
  jumps,
  branches,
  order,
  counters,
  gridCase,
];
