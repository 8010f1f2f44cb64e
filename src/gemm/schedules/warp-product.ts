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

/** Fragments of one K slice: an operator's k deep. */
interface Slice {
  readonly a: readonly unknown[];
  readonly b: readonly unknown[];
}

/** A K step in shared memory. */
export interface ProductStep {
  readonly a: SharedTile;
  readonly b: SharedTile;
  /** Its number, for transforms' coordinates. */
  readonly step: Value<I32>;
}

/** What one warp multiplies. With two `buffers`, one slice can be loaded while the other is multiplied. */
export class WarpProduct {
  readonly accumulators: readonly (readonly unknown[])[];
  /** K slices of a step. */
  readonly slices: number;
  readonly #buffers: readonly Slice[];

  constructor(
    private readonly kind: GemmKind,
    private readonly operator: Operator,
    private readonly base: { readonly R: Value<I32>; readonly C: Value<I32> },
    private readonly args: GemmArguments,
    private readonly output: { readonly row: Value<I32>; readonly column: Value<I32> },
    private readonly streams: {
      readonly transforms: Transforms;
      readonly extras: ExtrasOf<ExtraValue>;
    },
    buffers: 1 | 2,
  ) {
    const { block: extents, warps } = kind.params;
    const down = extents.m / warps.m / operator.shape.m;
    const across = extents.n / warps.n / operator.shape.n;
    this.slices = extents.k / operator.shape.k;
    this.#buffers = Array.from({ length: buffers }, () => ({
      a: Array.from({ length: down }, () => operator.createA()),
      b: Array.from({ length: across }, () => operator.createB()),
    }));
    const [first] = this.#buffers;
    this.accumulators = first.a.map(() => first.b.map(() => operator.createAccumulator()));
  }

  /** Multiplies one K step out of shared memory, slice by slice. */
  run(step: ProductStep): void {
    for (let slice = 0; slice < this.slices; slice++) {
      this.load(step, slice);
      this.multiply(slice);
    }
  }

  /** Loads a slice of a K step into the buffer whose turn it is. */
  load({ a, b, step }: ProductStep, slice: number): void {
    const { operator, base, output, args, kind } = this;
    const { m, n, k } = operator.shape;
    const depth = step.mul(kind.params.block.k);
    const transformA = this.#transform("a", output.row, depth, args.m, args.k);
    const transformB = this.#transform("b", depth, output.column, args.k, args.n);
    const fragments = this.#buffers[slice % this.#buffers.length];
    fragments.a.forEach((fragment, i) => {
      const at = translate(tile({ R: m, C: k }), { R: base.R });
      operator.loadA(fragment, a, translate(at, { R: i * m, C: slice * k }), transformA);
    });
    fragments.b.forEach((fragment, j) => {
      const at = translate(tile({ R: k, C: n }), { C: base.C });
      operator.loadB(fragment, b, translate(at, { R: slice * k, C: j * n }), transformB);
    });
  }

  /** Multiplies the slice that was loaded. */
  multiply(slice: number): void {
    const fragments = this.#buffers[slice % this.#buffers.length];
    fragments.a.forEach((left, i) => {
      fragments.b.forEach((right, j) => {
        this.operator.multiply(this.accumulators[i][j], left, right);
      });
    });
  }

  /** A shared→register transform in whole-matrix coordinates; what is no element of the matrix contributes nothing. */
  #transform(
    operand: "a" | "b",
    row: Value<I32>,
    column: Value<I32>,
    rows: Value<I32>,
    columns: Value<I32>,
  ): FragmentTransform | undefined {
    const transform = this.streams.transforms[operand]?.sharedToRegister;
    if (transform === undefined) return undefined;
    const { layout } = this.kind[operand];
    return (value, down, across) => {
      const at = { row: plus(row, down) as Value<I32>, column: plus(column, across) as Value<I32> };
      const counts = counting(at, rows, columns, layout, this.streams.extras[operand] ?? []);
      return maskOutside(transform(value, at), counts, this.operator.outside ?? 0);
    };
  }
}
