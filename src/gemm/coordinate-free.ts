/**
 * @file Whether epilogues and transforms see where an element is: if none does, rows and columns of a product may be
 * counted in whatever order suits memory.
 */
import type { EpilogueStep } from "./epilogues/step.ts";
import type { GemmOptions } from "./resolve.ts";
import type { GivenTransform, Transform } from "./transforms.ts";

/** A function that declares one parameter, the element, sees nothing else; of others nobody knows. */
function sees(component: EpilogueStep | GivenTransform): boolean {
  return typeof component !== "function" || (component as Transform).length !== 1;
}

/** Whether any component of a product depends on coordinates. */
export function seesCoordinates({ epilogue, transforms = {} }: GemmOptions): boolean {
  if (epilogue !== undefined && "run" in epilogue) return true;
  const steps = (epilogue ?? []) as readonly (EpilogueStep | Transform)[];
  const streams = Object.values(transforms).flatMap((stages) => Object.values(stages ?? {}));
  return [...steps, ...(streams as readonly (GivenTransform | undefined)[])].some(
    (component) => component !== undefined && sees(component),
  );
}
