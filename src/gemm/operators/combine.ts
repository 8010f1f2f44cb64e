/**
 * @file Sums of fragments, register by register.
 */
import {
  type AnyFragment,
  type AnyValue,
  type AnyVector,
  type ElementType,
  isFloat,
  tf32,
  u32,
  unpack,
  Vector,
} from "../../lang/index.ts";
import type { FragmentTerm } from "./operator.ts";

type Register = AnyValue | AnyVector;

/** Sets a fragment to a sum of others like it. `compute` is the type in which its elements are multiplied. */
export function combineFragments(
  target: AnyFragment,
  terms: readonly FragmentTerm<AnyFragment>[],
  compute: ElementType,
): void {
  for (let number = 0; number < target.registers; number++) {
    const [first, ...others] = terms.map(({ fragment, sign }) => ({
      held: fragment.register(number) as Register,
      sign,
    }));
    let sum = first.sign < 0 ? negated(first.held) : first.held;
    for (const { held, sign } of others) {
      sum = (sign < 0 ? sum.sub(held as never) : sum.add(held as never)) as Register;
      if (compute === tf32) sum = (sum as AnyValue).to(tf32).to(target.type);
    }
    target.setRegister(number, sum as never);
  }
}

/** The negative of a register: two halves at once by their sign bits. */
function negated(held: Register): Register {
  if (!(held instanceof Vector)) return held.neg();
  if (isFloat(held.type) && held.type.bits === 16 && held.lanes === 2) {
    return unpack(held.bitcast(u32, 1).xor(0x80008000), held.type, 2);
  }
  return held.map((value) => value.neg());
}
