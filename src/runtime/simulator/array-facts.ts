/** @file Shared arrays and constant tables as checks and accesses see them. */
import { bf16ToBits, e4m3ToBits, e5m2ToBits, f16ToBits } from "../../types/bits.ts";
import { type StorageType, types } from "../../types/types.ts";
import { type TypedArray, typedView } from "./buffers.ts";

/** A shared array as checks see it. */
export class SharedArrayFacts {
  constructor(
    readonly id: number,
    readonly element: string,
    readonly length: number,
    readonly byteOffset: number,
    readonly size: number,
    readonly start: number,
    readonly shift: number,
    readonly base: number,
  ) {}
}

/** A constant table. */
export class TableFacts {
  readonly view: TypedArray;
  readonly length: number;
  constructor(
    readonly id: number,
    element: string,
    values: readonly (number | bigint)[],
  ) {
    const type = types[element as StorageType["name"]];
    const bytes = (values.length * type.bits) / 8;
    this.length = values.length;
    this.view = typedView(type, new ArrayBuffer(bytes), 0, values.length);
    this.encode = encoders[element];
    values.forEach((value, position) => {
      (this.view as Float64Array)[position] = (
        this.encode === undefined ? value : this.encode(Number(value))
      ) as number;
    });
  }
  private readonly encode: ((x: number) => number) | undefined;
}

const encoders: { readonly [name: string]: ((x: number) => number) | undefined } = {
  f16: f16ToBits,
  bf16: bf16ToBits,
  e4m3: e4m3ToBits,
  e5m2: e5m2ToBits,
};
