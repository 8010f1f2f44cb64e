/**
 * @file The JavaScript target: a kernel as the body of a function of the simulator's services.
 *
 * The text names services (runtime/simulator/services.ts lists them) and returns the kernel's generator with the sizes
 * that a subgroup's state needs. It holds numbers, keywords and names made here, nothing that came from a user.
 */
import type { ConstantTable, KernelIr } from "../../ir/nodes.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { byteSize } from "../../types/types.ts";
import { Emission, type SimulationMode } from "./emission.ts";
import { literal } from "./literals.ts";
import { serviceNames } from "./services.ts";
import { SubgroupWriter } from "./subgroup.ts";

export type { SimulationMode } from "./emission.ts";

/** The kernel as JavaScript. Sites are numbers; `kernel.positions` says where they are. */
export function generateJavaScript(
  kernel: KernelIr,
  _facts: TargetFacts,
  mode: SimulationMode,
): { readonly text: string } {
  const emission = new Emission(kernel, mode);
  const main = new SubgroupWriter(emission).write(kernel.body);
  const { storage } = emission;
  const header = [
    '"use strict";',
    `const {${serviceNames.join(", ")}} = services;`,
    ...kernel.shared.map((array) => sharedLiteral(emission, array)),
    ...kernel.constants.map(tableLiteral),
    `const plans = [${emission.plans.join(",\n")}];`,
  ];
  const constants = storage.constants.map(({ bank, slot, value }) => {
    const text =
      typeof value === "boolean"
        ? value
          ? "1"
          : "0"
        : typeof value === "bigint"
          ? `${value}n`
          : Object.is(value, -0)
            ? "-0"
            : String(value);
    return `["${bank}", ${slot}, ${text}]`;
  });
  const granules = [...emission.granules.buffers].map(([parameter, bytes]) => `[${parameter}, ${bytes}]`);
  const checked = kernel.variables.flatMap((variable) => {
    const kinds = (emission.unassigned.has(variable) ? 1 : 0) + (emission.flying.has(variable) ? 2 : 0);
    const first = storage.elementBase.get(variable)!;
    return kinds === 0
      ? []
      : Array.from({ length: variable.count }, (_, position) => `[${first + position}, ${kinds}]`);
  });
  const result = [
    "return {",
    `main, checks: ${mode.checks}, counters: ${mode.counters},`,
    `floats: ${storage.count("f")}, integers: ${storage.count("i")}, bigints: ${storage.count("b")},`,
    `sets: ${emission.setCount}, elements: ${storage.elementCount},`,
    `constants: [${constants.join(", ")}],`,
    `checked: [${checked.join(", ")}],`,
    `sharedGranules: ${emission.granules.count}, bufferGranules: [${granules.join(", ")}],`,
    "};",
  ];
  return { text: [...header, ...emission.functions, main, ...result, ""].join("\n") };
}

function sharedLiteral({ granules }: Emission, array: KernelIr["shared"][number]): string {
  const { start, shift, base } = granules.arrays.get(array) ?? { start: 0, shift: 0, base: 0 };
  const size = byteSize(array.element);
  return `const a${array.id} = sharedArray(${array.id}, "${array.element.name}", ${array.length}, ${array.byteOffset}, ${size}, ${start}, ${shift}, ${base});`;
}

function tableLiteral({ id, element, values }: ConstantTable): string {
  return `const c${id} = constantTable(${id}, "${element.name}", [${values.map((value) => literal(element, value)).join(", ")}]);`;
}
