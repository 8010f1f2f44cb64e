/**
 * @file What one warp multiplies out of shared memory.
 */
import type { I32, Value } from "../../lang/index.ts";
import { plus, tile, translate } from "../../tile/index.ts";
import type { GemmKind } from "../kind.ts";
import type { FragmentTransform, Operator, SharedTile } from "../operators/operator.ts";
import type { Transform } from "../transforms.ts";
import type { GemmArguments } from "./kernel-interface.ts";
import { maskOutside } from "./staged-copy.ts";

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
    const transformA = this.#transform(
      this.kind.transforms.a?.sharedToRegister,
      this.output.row,
      depth,
      this.args.m,
      this.args.k,
    );
    const transformB = this.#transform(
      this.kind.transforms.b?.sharedToRegister,
      depth,
      this.output.column,
      this.args.k,
      this.args.n,
    );
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

  /** A shared→register transform in whole-matrix coordinates; what lies outside the matrix contributes nothing. */
  #transform(
    transform: Transform | undefined,
    row: Value<I32>,
    column: Value<I32>,
    rows: Value<I32>,
    columns: Value<I32>,
  ): FragmentTransform | undefined {
    if (transform === undefined) return undefined;
    return (value, down, across) => {
      const at = { row: plus(row, down) as Value<I32>, column: plus(column, across) as Value<I32> };
      return maskOutside(transform(value, at), at.row, at.column, rows, columns, this.operator.outside ?? 0);
    };
  }
}
