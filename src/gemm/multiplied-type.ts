/**
 * @file The type in which an operand is multiplied: that of its elements after the transform on their way to shared memory.
 */
import { TypeMismatchError } from "../errors.ts";
import {
  type AnyValue,
  type ElementType,
  type GlobalArray,
  i32,
  inout,
  isFloat,
  isInteger,
  isStorage,
  kernel,
  type StorageType,
  variable,
} from "../lang/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import type { ElementCoordinates } from "./coordinates.ts";
import { extraKind, extraParameters, extrasKey, extraValues } from "./extras.ts";
import type { GivenTransform, TransformWithExtras } from "./transforms.ts";

/** Results by function, then by the types that it is given. */
const found: WeakMap<object, Map<string, ElementType>> = new WeakMap();

/** Where a transform will run. */
export interface TransformPlace {
  readonly facts: TargetFacts;
  /** Whether it is told the number of its matrix. */
  readonly batched: boolean;
}

/** The type of what a transform makes of elements of a type: it is traced once for that. */
function resultType(
  transform: GivenTransform,
  type: StorageType,
  { facts, batched }: TransformPlace,
): ElementType {
  const { component, extras } =
    typeof transform === "function" ? { component: transform, extras: [] } : transform;
  const kinds = extras.map(extraKind);
  const key = `${type.name}/${batched ? "batched" : "single"}/${extrasKey(kinds)}`;
  const ofFunction = found.get(component) ?? new Map<string, ElementType>();
  found.set(component, ofFunction);
  const known = ofFunction.get(key);
  if (known !== undefined) return known;
  let result: ElementType | undefined;
  const trial = kernel("transform_trial", {
    params: { x: inout(type, 0), row: i32, column: i32, batch: i32, ...extraParameters("own", kinds) },
    block: 1,
    body(args) {
      const { x, row, column, batch } = args as unknown as ElementCoordinates & {
        readonly x: GlobalArray<StorageType>;
      };
      const at = { row, column, batch: batched ? batch : undefined };
      const own = extraValues("own", kinds, args as Readonly<Record<string, unknown>>);
      const value = (component as TransformWithExtras)(x.loadAt(0), at, own) as AnyValue | undefined;
      result = value?.type as ElementType | undefined;
      // A comparison that nothing used would be taken for a mistake.
      if (result !== undefined) variable(result, value as never);
    },
  });
  trial.trace(facts);
  if (result === undefined)
    throw new TypeMismatchError("gemm: a transform returns a value of the kernel language, such as x.mul(2)");
  ofFunction.set(key, result);
  return result;
}

/**
 * The type that decides how an operand is multiplied. A transform to another kind of number, to a narrower type or out of
 * an 8-bit one decides it; results that are wider than what is stored, f32 of f16 say, are rounded back to the stored type,
 * because they are wider for the transform's own arithmetic.
 * @throws TypeMismatchError for results that cannot be multiplied
 */
export function multipliedType(
  transform: GivenTransform | undefined,
  stored: StorageType,
  place: TransformPlace,
): StorageType {
  if (transform === undefined) return stored;
  const result = resultType(transform, stored, place);
  if (!isStorage(result) || (!isFloat(result) && !isInteger(result))) {
    throw new TypeMismatchError(
      `gemm: a transform makes ${result.name} of ${stored.name}, which cannot be multiplied; end it by .to(f16) or another type of numbers`,
    );
  }
  if (isFloat(result) !== isFloat(stored)) return result;
  const wider = result.bits > stored.bits && (result.bits >= 32 || !isFloat(stored));
  return wider ? stored : result;
}
