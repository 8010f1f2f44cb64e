/**
 * @file Division and remainder. Integers: x/0 = x, x%0 = 0, MIN/-1 = MIN, MIN%-1 = 0; the guard is emitted only where the
 * divisor is not a constant that rules these out.
 */
import type { Operand } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import { isConstantOtherThan, isHalf, type NodeEmitter } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";
import { narrow, widen } from "./halves.ts";
import { lanesOf, pack } from "./lanes.ts";
import { instructionType, laneClass, registerBits } from "./registers.ts";

type DivisionName = "div" | "rem" | "floorDiv" | "floorMod";

interface Division {
  readonly emission: Emission;
  readonly element: ElementType;
  readonly suffix: string;
  readonly cls: "b32" | "b64";
  readonly dividend: string;
  readonly divisor: string;
  /** A divisor that may be replaced by 1 has been: then these hold where it was. */
  readonly safeDivisor: string;
  readonly isZero: string | undefined;
}

function division(
  emission: Emission,
  element: ElementType,
  dividend: string,
  divisor: string,
  operand: Operand,
): Division {
  const cls = laneClass(element) === "b64" ? "b64" : "b32";
  const base = { emission, element, suffix: instructionType(element), cls, dividend, divisor } as const;
  const signed = element.class === "signed";
  if (signed ? isConstantOtherThan(operand, 0, -1) : isConstantOtherThan(operand, 0)) {
    return { ...base, safeDivisor: divisor, isZero: undefined };
  }
  const isZero = emission.compute("pred", `setp.eq.${base.suffix}`, divisor, 0);
  return { ...base, safeDivisor: emission.compute(cls, `selp.${cls}`, 1, divisor, isZero), isZero };
}

/**
 * Truncated quotient. Dividing by 1 in place of 0 already gives x/0 = x. For MIN/-1 the hardware's quotient of magnitudes,
 * negated with wrap-around, is MIN.
 */
function quotient(d: Division): string {
  return d.emission.compute(d.cls, `div.${d.suffix}`, d.dividend, d.safeDivisor);
}

/** Remainder from the quotient; with divisor 1 in place of 0 it is 0, as wanted. */
function remainder(d: Division): string {
  if (d.isZero === undefined) return d.emission.compute(d.cls, `rem.${d.suffix}`, d.dividend, d.safeDivisor);
  const product = d.emission.compute(d.cls, `mul.lo.${d.suffix}`, quotient(d), d.safeDivisor);
  return d.emission.compute(d.cls, `sub.${d.suffix}`, d.dividend, product);
}

/** Predicate: the truncated remainder is not zero and its sign differs from the divisor's. */
function needsCorrection(d: Division, rest: string): string {
  const { emission, cls, suffix } = d;
  const inexact = emission.compute("pred", `setp.ne.${suffix}`, rest, 0);
  const signs = emission.compute(cls, `xor.${cls}`, rest, d.safeDivisor);
  const opposite = emission.compute("pred", `setp.lt.${suffix}`, signs, 0);
  return emission.compute("pred", "and.pred", inexact, opposite);
}

function floorDiv(d: Division): string {
  const { emission, cls, suffix } = d;
  const truncated = quotient(d);
  if (d.element.class === "unsigned") return truncated;
  const product = emission.compute(cls, `mul.lo.${suffix}`, truncated, d.safeDivisor);
  const rest = emission.compute(cls, `sub.${suffix}`, d.dividend, product);
  const less = emission.compute(cls, `sub.${suffix}`, truncated, 1);
  return emission.compute(cls, `selp.${cls}`, less, truncated, needsCorrection(d, rest));
}

function floorMod(d: Division): string {
  const rest = remainder(d);
  if (d.element.class === "unsigned") return rest;
  const moved = d.emission.compute(d.cls, `add.${d.suffix}`, rest, d.safeDivisor);
  return d.emission.compute(d.cls, `selp.${d.cls}`, moved, rest, needsCorrection(d, rest));
}

const integerRules: Readonly<Record<DivisionName, (d: Division) => string>> = {
  div: quotient,
  rem: remainder,
  floorDiv,
  floorMod,
};

function floatQuotient(emission: Emission, element: ElementType, a: string, b: string): string {
  if (!isHalf(element)) return emission.compute(laneClass(element), `div.rn.${element.name}`, a, b);
  const wide = emission.compute(
    "b32",
    "div.rn.f32",
    widen(emission, element, a),
    widen(emission, element, b),
  );
  return narrow(emission, element, wide);
}

function emitter<Name extends DivisionName>(name: Name): NodeEmitter<Name> {
  return (emission, node) => {
    const { type } = node.result!;
    const [a, b] = node.operands as [Operand, Operand];
    const [dividends, divisors] = [lanesOf(emission, a), lanesOf(emission, b)];
    const lanes = dividends.map((dividend, lane) => {
      if (type.element.class === "float")
        return floatQuotient(emission, type.element, dividend, divisors[lane]!);
      return integerRules[name](division(emission, type.element, dividend, divisors[lane]!, b));
    });
    emission.define(node.result, pack(emission, type, lanes));
  };
}

export const emitDiv: NodeEmitter<"div"> = emitter("div");
export const emitRem: NodeEmitter<"rem"> = emitter("rem");
export const emitFloorDiv: NodeEmitter<"floorDiv"> = emitter("floorDiv");
export const emitFloorMod: NodeEmitter<"floorMod"> = emitter("floorMod");

/** Weight of a division for the decision whether a branch is short: a call for 64 bits, some ten instructions for 32. */
export function isLongDivision(element: ElementType): boolean {
  return registerBits(element) >= 32;
}
