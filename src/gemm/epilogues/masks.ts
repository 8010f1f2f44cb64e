/**
 * @file Masks: which elements were positive or kept, as bytes or as bits, written by a forward product and read by a backward one.
 */
import { ArgumentError } from "../../errors.ts";
import { type AnyValue, type Bool, constant, select, u8, u32, type Value } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import type { EpilogueStep, StepBehaviour } from "./step.ts";
import type { StepOperand, StepOperandShape, StepRun } from "./step-operand.ts";

/** Bytes: u8[m, n], 1 or 0. Bits: u32[m, ⌈n/32⌉], column j in bit j mod 32 of word ⌊j/32⌋. */
export type MaskForm = "bytes" | "bits";

/** The form that an array of masks has. */
export function maskForm(who: string, array: DeviceArray): MaskForm {
  if (array.type === u8) return "bytes";
  if (array.type === u32) return "bits";
  throw new ArgumentError(
    `gemm: ${who} takes a mask of bytes (u8[m, n]) or of bits (u32[m, ceil(n / 32)]), not ${array.label}`,
  );
}

/** How a step takes a mask. Words of bits are put together by atomics, which want zeros to begin with. */
export function maskOperand(form: MaskForm, access: "read" | "write"): StepOperandShape {
  if (form === "bytes") return { shape: "matrix", access, type: u8 };
  return { shape: "bits", access, type: u32, ...(access === "write" ? { cleared: true } : {}) };
}

/** Neighbours of a run whose bits share a word: all of an aligned run along a row, if their number divides 32. */
function sharingWord({ along, aligned, count }: StepRun): number {
  return along === "C" && aligned && 32 % count === 0 ? count : 1;
}

/** Stores which elements of a run are set. */
export function storeMask(
  form: MaskForm,
  operand: StepOperand,
  run: StepRun,
  set: readonly Value<Bool>[],
): void {
  if (form === "bytes") {
    operand.store(
      run,
      set.map((is) => select(is, constant(u32, 1), 0)),
    );
    return;
  }
  const together = sharingWord(run);
  for (let first = 0; first < run.count; first += together) {
    const { row, column } = run.at(first);
    const bits = set
      .slice(first, first + together)
      .map((is, e): AnyValue => select(is, constant(u32, 2 ** e), 0))
      .reduce((word, bit) => word.or(bit));
    const at = operand.positionAt(row, column.div(32));
    operand.memory.atomicAt("or", at, bits.shiftLeft(column.rem(32).to(u32)) as never);
  }
}

/** Which elements of a run are set. */
export function loadMask(form: MaskForm, operand: StepOperand, run: StepRun): readonly Value<Bool>[] {
  if (form === "bytes") return operand.load(run).map((byte) => byte.to(u32).ne(0) as Value<Bool>);
  const together = sharingWord(run);
  const shifted = (first: number): AnyValue => {
    const { row, column } = run.at(first);
    const word = operand.memory.loadAt(operand.positionAt(row, column.div(32))) as AnyValue;
    return word.shiftRight(column.rem(32).to(u32));
  };
  return Array.from({ length: run.count / together }, (_, group) => shifted(group * together)).flatMap(
    (bits) => Array.from({ length: together }, (_, e) => bits.and(2 ** e).ne(0) as Value<Bool>),
  );
}

const positives: { readonly [F in MaskForm]: StepBehaviour } = {
  bytes: positiveBehaviour("bytes"),
  bits: positiveBehaviour("bits"),
};

function positiveBehaviour(form: MaskForm): StepBehaviour {
  return {
    name: "mask of positive elements",
    operands: [maskOperand(form, "write")],
    apply(values, run, [operand]) {
      storeMask(
        form,
        operand,
        run,
        values.map((x) => x.gt(0) as Value<Bool>),
      );
      return values;
    },
  };
}

const maskeds: { readonly [F in MaskForm]: StepBehaviour } = {
  bytes: maskedBehaviour("bytes"),
  bits: maskedBehaviour("bits"),
};

function maskedBehaviour(form: MaskForm): StepBehaviour {
  return {
    name: "mask",
    operands: [maskOperand(form, "read")],
    apply(values, run, [operand]) {
      const set = loadMask(form, operand, run);
      return values.map((x, e) => select(set[e], x, constant(x.type, 0)));
    },
  };
}

/**
 * Writes which elements are positive at this step, as a ReLU's backward pass wants it: bytes (u8[m, n]) or bits
 * (u32[m, ceil(n / 32)], column j in bit j mod 32 of its word).
 */
export function positiveMask(mask: DeviceArray): EpilogueStep {
  return { behaviour: positives[maskForm("positiveMask()", mask)], arrays: [mask] };
}

/** Sets to zero what a mask of bytes or bits, as {@link positiveMask} and {@link dropout} write them, does not hold. */
export function applyMask(mask: DeviceArray): EpilogueStep {
  return { behaviour: maskeds[maskForm("applyMask()", mask)], arrays: [mask] };
}
