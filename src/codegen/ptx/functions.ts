/** @file Roots, exponentials, rounding to integers, bit counting and packed-byte products. */
import type { OperationName } from "../../ir/operations.ts";
import { isHalf, lanewise, type NodeEmitter } from "./arithmetic.ts";
import { narrow, widen } from "./halves.ts";
import { formOf, laneClass } from "./registers.ts";

/** A function that exists in f32 (and perhaps f64); halves go through f32. */
function unary<Name extends OperationName>(f32: string, f64: string, version = 63): NodeEmitter<Name> {
  return lanewise<Name>((emission, element, [a]) => {
    emission.needs(version);
    if (element.name === "f64") return emission.compute("b64", f64, a!);
    if (isHalf(element))
      return narrow(emission, element, emission.compute("b32", f32, widen(emission, element, a!)));
    return emission.compute("b32", f32, a!);
  });
}

/*
 * Exponentials and reciprocals flush subnormals: the forms that keep them cost several instructions around the one that
 * computes, for results that an addition or a product next to them mostly swallows.
 */

/** Marks the f64 form of a function that requirements.ts refuses before any emitter runs. */
const refused = "";

export const emitSqrt: NodeEmitter<"sqrt"> = unary("sqrt.rn.f32", "sqrt.rn.f64");
export const emitReciprocal: NodeEmitter<"reciprocal"> = unary("rcp.approx.ftz.f32", "rcp.rn.f64");
export const emitExp2: NodeEmitter<"exp2"> = unary("ex2.approx.ftz.f32", refused);
export const emitLog2: NodeEmitter<"log2"> = unary("lg2.approx.f32", refused);
export const emitSin: NodeEmitter<"sin"> = unary("sin.approx.f32", refused);
export const emitCos: NodeEmitter<"cos"> = unary("cos.approx.f32", refused);
export const emitTanh: NodeEmitter<"tanh"> = unary("tanh.approx.f32", refused, 70);
export const emitFloor: NodeEmitter<"floor"> = unary("cvt.rmi.f32.f32", "cvt.rmi.f64.f64");
export const emitCeil: NodeEmitter<"ceil"> = unary("cvt.rpi.f32.f32", "cvt.rpi.f64.f64");
export const emitTrunc: NodeEmitter<"trunc"> = unary("cvt.rzi.f32.f32", "cvt.rzi.f64.f64");
export const emitRoundEven: NodeEmitter<"roundEven"> = unary("cvt.rni.f32.f32", "cvt.rni.f64.f64");

/** `rsqrt.approx.f64` is good to f32 only; in f64 the root and the reciprocal are both rounded correctly instead. */
export const emitReciprocalSqrt: NodeEmitter<"reciprocalSqrt"> = lanewise((emission, element, [a]) => {
  if (element.name === "f64") {
    return emission.compute("b64", "rcp.rn.f64", emission.compute("b64", "sqrt.rn.f64", a!));
  }
  const wide = isHalf(element) ? widen(emission, element, a!) : a!;
  const root = emission.compute("b32", "rsqrt.approx.f32", wide);
  return isHalf(element) ? narrow(emission, element, root) : root;
});

/** popc, clz: their result is 32-bit whatever the operand. */
function counted<Name extends "popcount" | "leadingZeros">(opcode: string): NodeEmitter<Name> {
  return (emission, node) => {
    const { cls } = formOf(node.operands[0]!.type);
    const wide = formOf(node.result!.type).cls === "b64";
    const counts = emission.words(node.operands[0]!).map((word) => {
      const count = emission.compute("b32", `${opcode}.${cls}`, word);
      return wide ? emission.compute("b64", "cvt.u64.u32", count) : count;
    });
    emission.define(node.result, counts);
  };
}

export const emitPopcount: NodeEmitter<"popcount"> = counted("popc");
export const emitLeadingZeros: NodeEmitter<"leadingZeros"> = counted("clz");

export const emitReverseBits: NodeEmitter<"reverseBits"> = lanewise((emission, element, [a]) => {
  const cls = laneClass(element);
  return emission.compute(cls, `brev.${cls}`, a!);
});

export const emitDot4: NodeEmitter<"dot4"> = (emission, node) => {
  const { signedA, signedB } = node.attributes;
  const [a, b, c] = node.operands.map((operand) => emission.word(operand)) as [string, string, string];
  const opcode = `dp4a.${signedA ? "s32" : "u32"}.${signedB ? "s32" : "u32"}`;
  emission.define(node.result, [emission.compute("b32", opcode, a, b, c)]);
};

export const emitPermuteBytes: NodeEmitter<"permuteBytes"> = (emission, node) => {
  const [a, b, selector] = node.operands.map((operand) => emission.word(operand)) as [string, string, string];
  emission.define(node.result, [emission.compute("b32", "prmt.b32", a, b, selector)]);
};
