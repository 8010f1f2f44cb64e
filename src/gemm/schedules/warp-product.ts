/**
 * @file What one warp multiplies out of shared memory.
 */
import type { I32, Value } from "../../lang/index.ts";
import { plus, tile, translate } from "../../tile/index.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import type { FragmentTransform, Operator, SharedTile } from "../operators/operator.ts";
import type { Transforms } from "../transforms.ts";
import type { GemmArguments } from "./kernel-interface.ts";
import { counting, maskOutside } from "./staged-copy.ts";

/** What one warp multiplies. */
export class WarpProduct {
  readonly accumulators: readonly (readonly unknown[])[];
  readonly #a: readonly unknown[];
  readonly #b: readonly unknown[];

  constructor(
    private readonly kind: GemmKind,
    private readonly operator: Operator,
    private readonly base: { readonly R: Value<I32>; readonly C: Value<I32> },
    private readonly args: GemmArguments,
    private readonly output: { readonly row: Value<I32>; readonly column: Value<I32> },
    private readonly transforms: Transforms,
    private readonly extras: ExtrasOf<ExtraValue>,
  ) {
    const { block: extents, warps } = kind.params;
    const down = extents.m / warps.m / operator.shape.m;
    const across = extents.n / warps.n / operator.shape.n;
    this.#a = Array.from({ length: down }, () => operator.createA());
    this.#b = Array.from({ length: across }, () => operator.createB());
    this.accumulators = this.#a.map(() => this.#b.map(() => operator.createAccumulator()));
  }

  /** Multiplies one K step out of shared memory. */
  run(a: SharedTile, b: SharedTile, step: Value<I32>): void {
    const { operator, base } = this;
    const { m, n, k } = operator.shape;
    const depth = step.mul(this.kind.params.block.k);
    const { m: rows, n: columns, k: all } = this.args;
    const transformA = this.#transform("a", this.output.row, depth, rows, all);
    const transformB = this.#transform("b", depth, this.output.column, all, columns);
    for (let inner = 0; inner < this.kind.params.block.k; inner += k) {
      this.#a.forEach((fragment, i) => {
        const at = translate(tile({ R: m, C: k }), { R: base.R });
        operator.loadA(fragment, a, translate(at, { R: i * m, C: inner }), transformA);
      });
      this.#b.forEach((fragment, j) => {
        const at = translate(tile({ R: k, C: n }), { C: base.C });
        operator.loadB(fragment, b, translate(at, { R: inner, C: j * n }), transformB);
      });
      this.#a.forEach((left, i) => {
        this.#b.forEach((right, j) => {
          operator.multiply(this.accumulators[i][j], left, right);
        });
      });
    }
  }

  /** A shared→register transform in whole-matrix coordinates; what is no element of the matrix contributes nothing. */
  #transform(
    operand: "a" | "b",
    row: Value<I32>,
    column: Value<I32>,
    rows: Value<I32>,
    columns: Value<I32>,
  ): FragmentTransform | undefined {
    const transform = this.transforms[operand]?.sharedToRegister;
    if (transform === undefined) return undefined;
    const { layout } = this.kind[operand];
    return (value, down, across) => {
      const at = { row: plus(row, down) as Value<I32>, column: plus(column, across) as Value<I32> };
      const counts = counting(at, rows, columns, layout, this.extras[operand] ?? []);
      return maskOutside(transform(value, at), counts, this.operator.outside ?? 0);
    };
  }
}
