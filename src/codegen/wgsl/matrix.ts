/**
 * @file Subgroup matrices (`chromium_experimental_subgroup_matrix`) behind the `wmma` operations. A fragment becomes one
 * matrix variable; offset and stride of its loads and stores count the array's elements, which may be words.
 */
import { compileErrorAt } from "../../ir/error-at.ts";
import type { KernelIr, Operand, OperationNode, RegisterVariable } from "../../ir/nodes.ts";
import type { MatrixShape } from "../../ir/operations.ts";
import { visitStatements } from "../../ir/parameters.ts";
import { byteSize, type ElementType } from "../../types/types.ts";
import { asU32, elementPosition, scaled, written } from "./addresses.ts";
import type { NodeEmitter } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";
import type { View } from "./storage.ts";

/** WGSL counts columns first. */
function matrixType(use: "a" | "b" | "accumulator", element: ElementType, { m, n, k }: MatrixShape): string {
  switch (use) {
    case "a":
      return `subgroup_matrix_left<${element.name}, ${k}, ${m}>`;
    case "b":
      return `subgroup_matrix_right<${element.name}, ${n}, ${k}>`;
    case "accumulator":
      return `subgroup_matrix_result<${element.name}, ${n}, ${m}>`;
    default:
      return use satisfies never;
  }
}

/** The matrix type of each register variable that matrix operations touch, by its id. */
export function matrixVariables(kernel: KernelIr): ReadonlyMap<number, string> {
  const types = new Map<number, string>();
  const note = (variable: RegisterVariable, type: string, site: number): void => {
    const known = types.get(variable.id);
    if (known !== undefined && known !== type) {
      throw compileErrorAt(
        kernel,
        `fragment ${variable.name} is used as ${known} and as ${type}; use two`,
        site,
      );
    }
    types.set(variable.id, type);
  };
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation") return;
    switch (statement.name) {
      case "wmmaLoad": {
        const { use, element, shape } = statement.attributes;
        note(statement.registers[0]!.variable, matrixType(use, element, shape), statement.site);
        return;
      }
      case "wmmaStore": {
        const { element, shape } = statement.attributes;
        note(statement.registers[0]!.variable, matrixType("accumulator", element, shape), statement.site);
        return;
      }
      case "wmmaMma": {
        const { shape, a, b, accumulator } = statement.attributes;
        const [d, left, right] = statement.registers;
        note(d!.variable, matrixType("accumulator", accumulator, shape), statement.site);
        note(left!.variable, matrixType("a", a, shape), statement.site);
        note(right!.variable, matrixType("b", b, shape), statement.site);
        return;
      }
      default:
        return;
    }
  });
  return types;
}

const majors = { row: "row_major", column: "col_major" } as const;

interface MatrixPlace {
  readonly pointer: string;
  readonly offset: string;
  readonly stride: string;
}

function place(
  emission: Emission,
  node: OperationNode<"wmmaLoad"> | OperationNode<"wmmaStore">,
): MatrixPlace {
  const [index, stride] = node.operands as [Operand, Operand];
  const { array, offset, element } = node.attributes;
  emission.extensions.add("chromium_experimental_subgroup_matrix");
  if (element.name === "f16") emission.extensions.add("f16");
  const view = emission.storage.view(array);
  const perElement = elementsPerArrayElement(emission, view, node.site);
  return {
    pointer: `&${view.storage.name}`,
    offset: written(scaled(elementPosition(emission, view, index, offset), 1 / perElement)),
    stride: strideOf(emission, stride, perElement, node.site),
  };
}

function elementsPerArrayElement(emission: Emission, { storage, element }: View, site: number): number {
  if (storage.atomic) {
    throw emission.error(
      `a subgroup matrix cannot be loaded or stored where single ${element.name} elements are stored too: their words are atomic; store whole words (vectors) there`,
      site,
    );
  }
  const scalarBytes = storage.scalar === "f16" ? 2 : 4;
  return (scalarBytes * storage.unit) / byteSize(element);
}

function strideOf(emission: Emission, stride: Operand, perElement: number, site: number): string {
  if (stride.kind === "value") {
    if (perElement > 1) {
      throw emission.error(
        `here memory holds ${perElement} elements in one, so the distance of a subgroup matrix's lines must be known while tracing; stage the tile in shared memory`,
        site,
      );
    }
    return written(scaled({ variable: asU32(emission, stride), constant: 0 }, 1 / perElement));
  }
  const elements = Number(stride.value);
  if (elements % perElement !== 0) {
    throw emission.error(
      `a subgroup matrix's lines must be a multiple of ${perElement} elements apart here, not ${elements}`,
      site,
    );
  }
  return `${elements / perElement}u`;
}

export const emitWmmaLoad: NodeEmitter<"wmmaLoad"> = (emission, node) => {
  const { variable } = node.registers[0]!;
  const { pointer, offset, stride } = place(emission, node);
  const type = emission.matrixType(variable)!;
  const major = majors[node.attributes.major];
  emission.line(
    `${emission.variable(variable, 0)} = subgroupMatrixLoad<${type}, ${major}>(${pointer}, ${offset}, ${stride});`,
  );
};

export const emitWmmaStore: NodeEmitter<"wmmaStore"> = (emission, node) => {
  const { variable } = node.registers[0]!;
  const { pointer, offset, stride } = place(emission, node);
  const major = majors[node.attributes.major];
  emission.line(
    `subgroupMatrixStore<${major}>(${pointer}, ${offset}, ${emission.variable(variable, 0)}, ${stride});`,
  );
};

export const emitWmmaMma: NodeEmitter<"wmmaMma"> = (emission, node) => {
  emission.extensions.add("chromium_experimental_subgroup_matrix");
  const [d, a, b] = node.registers.map(({ variable }) => emission.variable(variable, 0));
  emission.line(`${d} = subgroupMatrixMultiplyAccumulate(${a}, ${b}, ${d});`);
};
