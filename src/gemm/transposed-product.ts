/**
 * @file Results that lie by columns on schedules that leave rows: the transpose of D = A · B lies by rows, and it is the
 * product Bᵀ · Aᵀ of the same arrays.
 */
import { DeviceArray } from "../runtime/array.ts";
import type { EpilogueStep } from "./epilogues/step.ts";
import { transposedStep } from "./epilogues/steps.ts";
import type { GemmOptions } from "./resolve.ts";
import type { MatrixSource } from "./source.ts";
import type { Transform } from "./transforms.ts";

/** Operands and options of a product. */
export interface Product {
  readonly a: DeviceArray | MatrixSource;
  readonly b: DeviceArray | MatrixSource;
  readonly options: GemmOptions;
}

/** The product that makes Dᵀ in D's memory; undefined where D lies by rows, or something else says where an element is. */
export function transposedProduct({ a, b, options }: Product): Product | undefined {
  const { c, d, epilogue = [], transforms, predicate, gate, operator, params } = options;
  if (!isMatrix(a) || !isMatrix(b) || !isMatrix(d) || !(c === undefined || isMatrix(c))) return undefined;
  if (!liesByColumns(d) || (c !== undefined && !liesByColumns(c))) return undefined;
  const others = [transforms, predicate, gate, operator, params];
  if ("run" in epilogue || others.some((other) => other !== undefined)) return undefined;
  const steps = epilogue.map(transposed);
  if (steps.includes(undefined)) return undefined;
  return {
    a: b.transposed,
    b: a.transposed,
    options: {
      ...options,
      ...(c === undefined ? {} : { c: c.transposed }),
      d: d.transposed,
      epilogue: steps as readonly (EpilogueStep | Transform)[],
    },
  };
}

function isMatrix(given: unknown): given is DeviceArray {
  return given instanceof DeviceArray && given.rank === 2;
}

function liesByColumns({ shape: [rows, columns], strides }: DeviceArray): boolean {
  return strides[0] === 1 && strides[1] !== 1 && rows! > 1 && columns! > 1;
}

/** A step for D's transpose. A function of the element alone is the same for both. */
function transposed(step: EpilogueStep | Transform): EpilogueStep | Transform | undefined {
  if (typeof step === "function") return step.length === 1 ? step : undefined;
  return transposedStep(step);
}
