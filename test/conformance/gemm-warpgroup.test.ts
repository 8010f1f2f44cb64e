/** @file What rides on the warpgroup schedule beside plain products: A through registers, K steps left out. */
import { bf16, f16, f32, type StorageType } from "tilewright";
import {
  type GemmOptions,
  masked,
  type Predicate,
  planGemm,
  rowMajor,
  type Transform,
} from "tilewright/gemm";
import { select } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { generator } from "../support/random.ts";
import { checkGemm } from "./gemm-cases.ts";
import { expectClose, onEveryDevice } from "./table.ts";

/** An operand of a product as the host sees it. */
interface Operand {
  readonly rows: number;
  readonly columns: number;
  readonly transposed: boolean;
}

/** Integers that every product of a few hundred terms holds exactly in f32. */
function values(count: number, random: () => number): number[] {
  return Array.from({ length: count }, () => Math.floor(random() * 17) - 8);
}

type Element = (a: (row: number, column: number) => number, row: number, column: number) => number;

interface Case {
  readonly name: string;
  readonly options: GemmOptions;
  /** What A's elements become. */
  readonly element?: Element;
  /** Whether a K step counts for a tile that begins at this row. */
  readonly counts?: (step: number, row: number) => boolean;
}

const scaled: Transform = (x, { row, column }) =>
  select(row.lt(column), x.mul(2), x.add(1)) as ReturnType<Transform>;
const scaledValue: Element = (a, row, column) => (row < column ? 2 * a(row, column) : a(row, column) + 1);
const odd: Predicate = { name: "odd steps", next: (_, step) => step.or(1) };

const cases: readonly Case[] = [
  {
    name: "a transform that turns the zeros beyond the edges into ones",
    options: { transforms: { a: { sharedToRegister: scaled } } },
    element: scaledValue,
  },
  {
    name: "two transforms, one after the other",
    options: { transforms: { a: { globalToShared: scaled, sharedToRegister: (x) => x.neg() } } },
    element: (a, row, column) => -scaledValue(a, row, column),
  },
  {
    name: "every other K step, which leaves short products none",
    options: { predicate: odd },
    counts: (step) => step % 2 === 1,
  },
];

const shapes: readonly (readonly [m: number, n: number, k: number])[] = [
  [130, 70, 200],
  [65, 129, 129],
  [200, 40, 63],
];

onEveryDevice((device, kind) => {
  const array = (type: StorageType, { rows, columns, transposed }: Operand, data: readonly number[]) => {
    // Lines of a multiple of 16 bytes, as tensor maps want them.
    const [lines, length] = transposed ? [columns, rows] : [rows, columns];
    const leading = Math.ceil(length / 8) * 8;
    const filled = Array.from({ length: lines * leading }, (_, at) => {
      const [line, place] = [Math.floor(at / leading), at % leading];
      const position = transposed ? place * columns + line : line * columns + place;
      return place < length ? data[position]! : Number.NaN;
    });
    const part = device().array(type, [lines, leading], filled).slice([0, lines], [0, length]);
    return transposed ? part.transposed : part;
  };

  const turns = kind === "simulator" ? 1 : 10;

  async function check(type: StorageType, transposed: boolean, { options, element, counts }: Case) {
    const random = generator(7);
    for (const [m, n, k] of shapes) {
      const [a, b] = [values(m * k, random), values(k * n, random)];
      const left = array(type, { rows: m, columns: k, transposed }, a);
      const right = array(type, { rows: k, columns: n, transposed: !transposed }, b);
      using plan = await planGemm(left, right, { type: f32, schedule: "warpgroup", ...options });
      const at = (row: number, column: number): number => a[row * k + column]!;
      const expected = Array.from({ length: m * n }, (_, position) => {
        const [row, column] = [Math.floor(position / n), position % n];
        let sum = 0;
        for (let depth = 0; depth < k; depth++) {
          if (counts?.(Math.floor(depth / 64), row) === false) continue;
          sum += (element ?? ((f, i, j) => f(i, j)))(at, row, depth) * b[depth * n + column]!;
        }
        return sum;
      });
      // Registers overwritten while a product read them gave wrong sums now and then only.
      for (let turn = 0; turn < turns; turn++) {
        plan.run();
        expectClose((await plan.d.read()) as Float32Array, expected, 0);
      }
      for (const one of [left, right, plan.d]) one.dispose();
    }
  }

  describe("the warpgroup schedule", () => {
    it.for([f16, f32])("D of $name whose lines end within the engine's 16 bytes", async (d, { skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      for (const n of [1, 3, 66, 127]) {
        const size = { m: 65, n, k: 16, lineMultiple: 8, padding: 8 };
        await checkGemm(device(), { ...size, a: f16, d, options: { schedule: "warpgroup" } });
      }
      const params = { block: { m: 128, n: 192, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 2 };
      const wide = { m: 130, n: 200, k: 72, lineMultiple: 8, padding: 8 };
      await checkGemm(device(), { ...wide, a: f16, d, options: { schedule: "warpgroup", params } });
    });

    for (const one of cases) {
      it.for([
        [f16, false],
        [bf16, true],
        [f16, true],
      ] as const)(`${one.name}: %s`, async ([type, transposed], { skip }) => {
        skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
        await check(type, transposed, one);
      });
    }
  });
});

describe("a mask over a dense layout", () => {
  it("lets loads bring the whole box where the layout beneath is one", () => {
    const mask = { counts: (row: never) => row, steps: {} as never };
    expect(masked("some", rowMajor, mask as never).facts).toMatchObject({ maskedBox: true });
  });
});
