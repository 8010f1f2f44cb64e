/**
 * @file How elements with several components leave a warpgroup's accumulators: a lane holds the same elements of every
 * component, so that they are combined in registers, and two neighbours of a row leave together.
 */
import { type AnyFragment, type Condition, type I32, type Value, when } from "../../lang/index.ts";
import { tile, translate } from "../../tile/index.ts";
import type { Algebra } from "../algebras/algebra.ts";
import { type ElementContext, writeElements } from "../algebras/epilogue.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import { accessWidth, type GemmKind, scaleTypeOf } from "../kind.ts";
import type { MatrixTile } from "../layouts/layout.ts";
import type { Transforms } from "../transforms.ts";
import { groupRows } from "./warpgroup-shape.ts";
import type { StoreArguments, StoreResources } from "./warpgroup-store.ts";

/** What an {@link ElementStore} works with. */
export interface ElementStoreOptions {
  readonly kind: GemmKind;
  readonly algebra: Algebra;
  /** C and D are the matrices of one tile. */
  readonly args: StoreArguments;
  readonly resources: Pick<StoreResources, "steps">;
  readonly transforms: Transforms;
  readonly extras: ExtrasOf<ExtraValue>;
}

/** Numbers of one access at most, before alignment has its say: what two elements have of four components. */
const widestAccess = 8;

/** How the accumulators of one tile leave. */
export class ElementStore {
  readonly #context: ElementContext;

  constructor(private readonly options: ElementStoreOptions) {
    const { kind, args, resources, transforms, extras } = options;
    const widths = [kind.d, ...(kind.c === undefined ? [] : [kind.c])].map((operand) =>
      accessWidth(operand, widestAccess, undefined),
    );
    this.#context = {
      scaleType: scaleTypeOf(kind.types.accumulator),
      alpha: args.alpha,
      source:
        kind.c === undefined
          ? undefined
          : {
              matrix: {
                memory: args.c,
                layout: kind.c.layout,
                leading: args.leadingC,
                extras: extras.c ?? [],
              },
              beta: args.beta,
            },
      target: { memory: args.d, layout: kind.d.layout, leading: args.leadingD, extras: extras.d ?? [] },
      width: Math.min(...widths),
      transforms,
      extras,
      steps: kind.steps,
      stepOperands: resources.steps,
    };
  }

  /** Stores 64 rows of a tile, those that begin at (row, column): `sums` by component. */
  leave(sums: readonly AnyFragment[], row: Value<I32>, column: Value<I32>): void {
    const { kind, args } = this.options;
    const whole = row.add(groupRows).le(args.m).and(column.add(kind.params.block.n).le(args.n));
    const pairs = (guarded: boolean): void => {
      for (let element = 0; element < sums[0].count; element += 2)
        this.#pair(sums, element, { row, column }, guarded);
    };
    when(whole, () => pairs(false)).otherwise(() => pairs(true));
  }

  /** Elements `i` and `i + 1` of each component, neighbours in a row. */
  #pair(
    sums: readonly AnyFragment[],
    i: number,
    first: { readonly row: Value<I32>; readonly column: Value<I32> },
    guarded: boolean,
  ): void {
    const { algebra, args } = this.options;
    const lane = sums[0].coordinates(i);
    const [row, column] = [first.row.add(lane.row), first.column.add(lane.column)];
    const write = (count: 1 | 2): void => {
      const values = sums.map((component) => Array.from({ length: count }, (_, e) => component.get(i + e)));
      const place = translate(tile({ R: 1, C: count }), { R: row, C: column }) as MatrixTile;
      writeElements(algebra, this.#context, values, place);
    };
    if (!guarded) {
      write(2);
      return;
    }
    const inside = (e: number): Condition => row.lt(args.m).and(column.add(e).lt(args.n));
    when(inside(1), () => write(2)).otherwise(() => {
      when(inside(0), () => write(1));
    });
  }
}
