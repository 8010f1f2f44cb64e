/**
 * @file Dropout, with random numbers that are computed from coordinates: no state, the same on every device and schedule.
 */
import { ArgumentError } from "../../errors.ts";
import {
  type AnyValue,
  type Bool,
  constant,
  f32,
  philox,
  type RandomWords,
  select,
  type U32,
  u32,
  uniform,
  type Value,
} from "../../lang/index.ts";
import { DeviceArray } from "../../runtime/array.ts";
import { type MaskForm, maskForm, maskOperand, storeMask } from "./masks.ts";
import type { EpilogueStep, StepBehaviour } from "./step.ts";
import type { StepRun } from "./step-operand.ts";

/** What dropout takes beside its probability. */
export interface DropoutOptions {
  /** Other seeds give unrelated choices: a number, or a u32 array of one element that changes between runs of a plan. */
  readonly seed: number | DeviceArray;
  /** Where to write what was kept, for {@link applyMask} of a backward pass: u8[m, n] or u32[m, ceil(n / 32)]. */
  readonly mask?: DeviceArray;
}

/**
 * Sets each element to zero with a probability, and divides the others by 1 - probability. The random number of element
 * (i, j) is `uniform` of word j mod 4 of `philox([i, ⌊j/4⌋, 0, 0], [seed, 0])`; the element stays where it is not less than
 * the probability. Probability and seed are arguments of the kernel.
 *
 * @throws ArgumentError for a probability outside [0, 1), a mask that is none
 */
export function dropout(probability: number, { seed, mask }: DropoutOptions): EpilogueStep {
  if (!(probability >= 0 && probability < 1)) {
    throw new ArgumentError(`gemm: dropout's probability is from 0 up to 1, not ${String(probability)}`);
  }
  const form = mask === undefined ? "none" : maskForm("dropout()", mask);
  const behaviour = behaviourOf(form, seed instanceof DeviceArray ? "scalar" : "number");
  const arrays = [Math.fround(probability), Math.fround(1 / (1 - probability)), seed];
  return { behaviour, arrays: mask === undefined ? arrays : [...arrays, mask] };
}

type SeedShape = "scalar" | "number";
const behaviours: Map<string, StepBehaviour> = new Map();

function behaviourOf(form: MaskForm | "none", seed: SeedShape): StepBehaviour {
  const key = `${form} ${seed}`;
  const made = behaviours.get(key) ?? makeBehaviour(form, seed);
  behaviours.set(key, made);
  return made;
}

function makeBehaviour(form: MaskForm | "none", seed: SeedShape): StepBehaviour {
  return {
    name: "dropout",
    operands: [
      { shape: "number", access: "read", type: f32 },
      { shape: "number", access: "read", type: f32 },
      { shape: seed, access: "read", type: u32 },
      ...(form === "none" ? [] : [maskOperand(form, "write")]),
    ],
    apply(values, run, [probability, factor, key, mask]) {
      const [least] = probability.load(run);
      const [scale] = factor.load(run);
      const [word] = key.load(run);
      const kept = randomWords(run, word).map((bits) => uniform(bits).ge(least) as Value<Bool>);
      if (form !== "none") storeMask(form, mask, run, kept);
      return values.map((x, e) => select(kept[e], x.mul(scale.to(x.type)), constant(x.type, 0)));
    },
  };
}

/** One word for each element of a run: neighbours along a row share a counter where their alignment says so. */
function randomWords(run: StepRun, seed: AnyValue): readonly Value<U32>[] {
  const { count, along, aligned } = run;
  const words = (e: number): RandomWords => {
    const { row, column } = run.at(e);
    return philox([row.to(u32), column.div(4).to(u32), 0, 0], [seed, 0]);
  };
  if (along === "C" && aligned && count % 4 === 0) {
    return Array.from({ length: count / 4 }, (_, four) => words(4 * four)).flat();
  }
  if (along === "C" && aligned && count === 2) {
    const [a, b, c, d] = words(0);
    const isSecond = run.at(0).column.rem(4).eq(2);
    return [select(isSecond, c, a), select(isSecond, d, b)];
  }
  return Array.from({ length: count }, (_, e) => {
    const [a, b, c, d] = words(e);
    const which = run.at(e).column.rem(4);
    const low = which.lt(2);
    const odd = which.rem(2).eq(1);
    return select(low, select(odd, b, a), select(odd, d, c));
  });
}
