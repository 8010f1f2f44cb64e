/** @file Loads and stores, atomics, register variables, and the values that launches provide. */
import type { IrValue, Operand, OperationNode, RegisterRange, ValueType } from "../../ir/nodes.ts";
import type { BuiltinName } from "../../ir/operations.ts";
import type { ElementType } from "../../types/types.ts";
import { divided, elementPosition, type Position, plus, remainder, scaled, written } from "./addresses.ts";
import { componentsOf, type Emission, type Held } from "./emission.ts";
import type { Storage, View } from "./storage.ts";
import { components, isNarrow, type ScalarType, vectorOf, wordCount } from "./types.ts";

/** An expression in place of a repeated one: names stay, others are computed once. */
function settled(emission: Emission, position: Position): Position {
  if (position.variable === undefined || /^\w+$/.test(position.variable)) return position;
  return { variable: emission.let(position.variable), constant: position.constant };
}

/** `count` scalars of a storage from a position in scalars on, which is a multiple of `count` (at most 4 and 8). */
function loadScalars(emission: Emission, storage: Storage, at: Position, count: number): readonly string[] {
  const { name, unit, atomic } = storage;
  if (unit === 1) {
    const start = count > 1 ? settled(emission, at) : at;
    return Array.from({ length: count }, (_, i) => {
      const place = `${name}[${written(plus(start, i))}]`;
      return emission.let(atomic ? `atomicLoad(&${place})` : place);
    });
  }
  if (count >= unit) {
    const start = count > unit ? settled(emission, divided(at, unit)) : divided(at, unit);
    return Array.from({ length: count / unit }, (_, i) =>
      componentsOf(emission.let(`${name}[${written(plus(start, i))}]`), unit),
    ).flat();
  }
  const [element, component] = split(emission, storage, at, count);
  return Array.from({ length: count }, (_, i) =>
    emission.let(`${name}[${element}]${selected(component, i)}`),
  );
}

/** Array element and first component of an access narrower than the storage's vectors. */
function split(
  emission: Emission,
  { unit }: Storage,
  at: Position,
  count: number,
): readonly [string, Position] {
  const start = settled(emission, at);
  const element = written(divided(start, unit));
  const component = remainder(start, unit);
  return [element, count > 1 ? settled(emission, component) : component];
}

function selected(component: Position, i: number): string {
  const position = plus(component, i);
  return position.variable === undefined ? `.${components[position.constant]}` : `[${written(position)}]`;
}

function storeScalars(emission: Emission, storage: Storage, at: Position, scalars: readonly string[]): void {
  const { name, unit, atomic, scalar } = storage;
  const count = scalars.length;
  if (unit === 1) {
    const start = count > 1 ? settled(emission, at) : at;
    scalars.forEach((value, i) => {
      const place = `${name}[${written(plus(start, i))}]`;
      emission.line(atomic ? `atomicStore(&${place}, ${value});` : `${place} = ${value};`);
    });
    return;
  }
  if (count >= unit) {
    const start = count > unit ? settled(emission, divided(at, unit)) : divided(at, unit);
    for (let i = 0; i < count / unit; i++) {
      const own = scalars.slice(i * unit, (i + 1) * unit).join(", ");
      emission.line(`${name}[${written(plus(start, i))}] = ${vectorOf(scalar, unit)}(${own});`);
    }
    return;
  }
  const [element, component] = split(emission, storage, at, count);
  scalars.forEach((value, i) => {
    emission.line(`${name}[${element}]${selected(component, i)} = ${value};`);
  });
}

/** Position in scalars of a storage, of which an element takes several, or several elements share one. */
function scalarPosition(storage: Storage, element: ElementType, at: Position): Position {
  return scaled(at, element.bits / (storage.scalar === "f16" ? 16 : 32));
}

/** Words of a storage of native halves. */
function loadHalves(emission: Emission, storage: Storage, type: ValueType, at: Position): readonly string[] {
  const count = Math.max(1, (type.element.bits * type.lanes) / 16);
  const start = scalarPosition(storage, type.element, at);
  const halves = loadScalars(emission, storage, start, count);
  return Array.from({ length: Math.ceil(count / 2) }, (_, word) =>
    emission.let(`bitcast<u32>(vec2<f16>(${halves[2 * word]}, ${halves[2 * word + 1] ?? "0.0h"}))`),
  );
}

function storeHalves(
  emission: Emission,
  storage: Storage,
  element: ElementType,
  at: Position,
  words: readonly string[],
): void {
  const halves = words.flatMap((word) => componentsOf(emission.let(`bitcast<vec2<f16>>(${word})`), 2));
  storeScalars(emission, storage, scalarPosition(storage, element, at), halves);
}

function reinterpreted(emission: Emission, scalar: string, from: ScalarType, element: ElementType): string {
  const to = emission.laneType(element);
  if (from === to) return scalar;
  const cast = `bitcast<${to}>(${scalar})`;
  return cast;
}

/** The value at a position. */
function loaded(emission: Emission, view: View, type: ValueType, at: Position): Held {
  const { storage } = view;
  const { element, lanes } = type;
  if (storage.scalar === "f16") return loadedFromHalves(emission, storage, type, at);
  if (!isNarrow(element)) {
    const scalars = loadScalars(emission, storage, at, lanes);
    return {
      lanes: scalars.map((scalar) => {
        const lane = reinterpreted(emission, scalar, storage.scalar, element);
        return lane === scalar ? lane : emission.let(lane);
      }),
    };
  }
  const bits = element.bits * lanes;
  const start = settled(emission, at);
  const words = loadScalars(emission, storage, scalarPosition(storage, element, start), wordCount(type)).map(
    (word) => (storage.scalar === "u32" ? word : emission.let(`bitcast<u32>(${word})`)),
  );
  if (bits >= 32) return { words };
  const shift = bitOffset(element, start);
  return { words: [emission.let(`extractBits(${words[0]}, ${shift}, ${bits}u)`)] };
}

function loadedFromHalves(emission: Emission, storage: Storage, type: ValueType, at: Position): Held {
  const { element, lanes } = type;
  emission.extensions.add("f16");
  if (element.name === "f16") return { lanes: loadScalars(emission, storage, at, lanes) };
  const start = settled(emission, at);
  const words = loadHalves(emission, storage, type, start);
  if (!isNarrow(element))
    return { lanes: words.map((word) => emission.let(emission.fromBits(word, element))) };
  if (element.bits * lanes >= 16) return { words };
  const shift = `(${written(remainder(start, 2))} * 8u)`;
  return { words: [emission.let(`extractBits(${words[0]}, ${shift}, 8u)`)] };
}

/** First bit of an element in its word. */
function bitOffset(element: ElementType, at: Position): string {
  const within = remainder(at, 32 / element.bits);
  return within.variable === undefined
    ? `${within.constant * element.bits}u`
    : `(${written(within)} * ${element.bits}u)`;
}

function stored(emission: Emission, view: View, value: Operand, at: Position): void {
  const { storage } = view;
  const { element, lanes } = value.type;
  if (storage.scalar === "f16") {
    if (element.name === "f16") storeScalars(emission, storage, at, emission.lanes(value));
    else storeHalves(emission, storage, element, at, emission.words(value));
    return;
  }
  if (!isNarrow(element)) {
    const same = emission.laneType(element) === storage.scalar;
    const scalars = same
      ? emission.lanes(value)
      : emission.lanes(value).map((lane) => `bitcast<${storage.scalar}>(${lane})`);
    storeScalars(emission, storage, at, scalars);
    return;
  }
  const bits = element.bits * lanes;
  if (bits >= 32) {
    storeScalars(emission, storage, scalarPosition(storage, element, at), emission.words(value));
    return;
  }
  storePart(emission, storage, element, bits, at, emission.words(value)[0]!);
}

/**
 * A part of a word, the rest of which other lanes may be writing. These bits are this lane's alone, so what they were
 * stays true until the exchange, which changes nothing else.
 */
function storePart(
  emission: Emission,
  storage: Storage,
  element: ElementType,
  bits: number,
  at: Position,
  value: string,
): void {
  const start = settled(emission, at);
  const place = `&${storage.name}[${written(scalarPosition(storage, element, start))}]`;
  const shift = emission.let(bitOffset(element, start));
  const old = emission.let(`extractBits(atomicLoad(${place}), ${shift}, ${bits}u)`);
  emission.line(`atomicXor(${place}, (${old} ^ extractBits(${value}, 0u, ${bits}u)) << ${shift});`);
}

export function emitLoad(emission: Emission, node: OperationNode<"load">): void {
  const { array, offset } = node.attributes;
  const view = emission.storage.view(array);
  const at = elementPosition(emission, view, node.operands[0]!, offset);
  emission.define(node.result, loaded(emission, view, node.result!.type, at));
}

export function emitStore(emission: Emission, node: OperationNode<"store">): void {
  const { array, offset } = node.attributes;
  const view = emission.storage.view(array);
  stored(emission, view, node.operands[1]!, elementPosition(emission, view, node.operands[0]!, offset));
}

// Atomics -------------------------------------------------------------------------------------------------------------

const functions = {
  add: "atomicAdd",
  min: "atomicMin",
  max: "atomicMax",
  and: "atomicAnd",
  or: "atomicOr",
  xor: "atomicXor",
  exchange: "atomicExchange",
} as const;

export function emitAtomic(emission: Emission, node: OperationNode<"atomic">): void {
  const { array, offset, operation } = node.attributes;
  const view = emission.storage.view(array);
  const { storage } = view;
  const at = elementPosition(emission, view, node.operands[0]!, offset);
  const place = `&${storage.name}[${written(settled(emission, at))}]`;
  const { element } = node.operands[1]!.type;
  const own = emission.laneType(element) === storage.scalar;
  const [value, replacement] = node.operands.slice(1).map((operand) => emission.lane(operand));
  const cast = (lane: string): string => (own ? lane : `bitcast<${storage.scalar}>(${lane})`);
  const back = (name: string): string =>
    own ? name : emission.let(`bitcast<${emission.laneType(element)}>(${name})`);
  if (operation === "compareExchange") {
    emission.define(node.result, {
      lanes: [back(exchanged(emission, storage, place, cast(value!), cast(replacement!)))],
    });
    return;
  }
  const moves = operation === "exchange";
  if (own || moves || wraps(element, operation)) {
    const result = emission.let(`${functions[operation]}(${place}, ${cast(value!)})`);
    emission.define(node.result, { lanes: [back(result)] });
    return;
  }
  const combine = (old: string): string => combined(emission, element, operation, old, value!);
  emission.define(node.result, { lanes: [back(updated(emission, storage, element, place, combine))] });
}

/** Integer operations that do not care for the sign. */
function wraps(element: ElementType, operation: string): boolean {
  return element.class !== "float" && operation !== "min" && operation !== "max";
}

function combined(emission: Emission, element: ElementType, operation: string, a: string, b: string): string {
  if (operation === "add") return `${a} + ${b}`;
  const name = operation as "min" | "max";
  return element.class === "float" ? emission.call(`${name}_f32`, a, b) : `${name}(${a}, ${b})`;
}

/** Strong compare-exchange: the weak one may fail for no reason. */
function exchanged(
  emission: Emission,
  { scalar }: Storage,
  place: string,
  expected: string,
  replacement: string,
): string {
  const old = emission.name();
  emission.line(`var ${old}: ${scalar};`);
  emission.nested("loop {", () => {
    const result = emission.let(`atomicCompareExchangeWeak(${place}, ${expected}, ${replacement})`);
    emission.line(`${old} = ${result}.old_value;`);
    emission.line(`if (${result}.exchanged || ${old} != ${expected}) { break; }`);
  });
  return emission.let(old);
}

/** Read, compute, compare and exchange until nobody came between. */
function updated(
  emission: Emission,
  { scalar }: Storage,
  element: ElementType,
  place: string,
  combine: (old: string) => string,
): string {
  const old = emission.name();
  emission.line(`var ${old}: ${scalar} = atomicLoad(${place});`);
  emission.nested("loop {", () => {
    const present = emission.let(`bitcast<${emission.laneType(element)}>(${old})`);
    const next = emission.let(`bitcast<${scalar}>(${combine(present)})`);
    const result = emission.let(`atomicCompareExchangeWeak(${place}, ${old}, ${next})`);
    emission.line(`if (${result}.exchanged) { break; }`);
    emission.line(`${old} = ${result}.old_value;`);
  });
  return emission.let(old);
}

// Register variables --------------------------------------------------------------------------------------------------

export function emitReadRegister(emission: Emission, node: OperationNode<"readRegister">): void {
  const { variable, offset } = node.registers[0] as RegisterRange;
  if (emission.matrixType(variable) !== undefined) throw emission.error(opaque(variable.name), node.site);
  const atoms = componentsOf(
    emission.let(emission.variable(variable, offset)),
    emission.variableParts(variable).count,
  );
  emission.define(node.result, emission.holdsWords(variable.type) ? { words: atoms } : { lanes: atoms });
}

function opaque(name: string): string {
  return `variable ${name} is a subgroup matrix, whose elements no lane can see; store it to shared memory first`;
}

export function emitWriteRegister(emission: Emission, node: OperationNode<"writeRegister">): void {
  const { variable, offset } = node.registers[0] as RegisterRange;
  const value = node.operands[0]!;
  const matrix = emission.matrixType(variable);
  if (matrix !== undefined) {
    if (value.kind !== "constant") throw emission.error(opaque(variable.name), node.site);
    // All elements of a matrix are filled together, when the first of them is.
    if (offset === 0) {
      const component = /<(\w+)/.exec(matrix)![1]!;
      const filling =
        component === "f32" || component === "f16" ? Number(value.value).toFixed(1) : value.value;
      emission.line(`${emission.variable(variable, 0)} = ${matrix}(${filling});`);
    }
    return;
  }
  const atoms = emission.holdsWords(variable.type) ? emission.words(value) : emission.lanes(value);
  const { scalar, count } = emission.variableParts(variable);
  const contents = count === 1 ? atoms[0]! : `${vectorOf(scalar, count)}(${atoms.join(", ")})`;
  emission.line(`${emission.variable(variable, offset)} = ${contents};`);
}

// Launch --------------------------------------------------------------------------------------------------------------

/** Linear index of the thread: threads of one subgroup follow each other, whatever the hardware's own order. */
export function threadIndex(emission: Emission): string {
  if (!countsBySubgroup(emission)) return emission.builtin("local_invocation_index");
  const { width } = emission.facts.subgroup;
  const [id, lane] = [emission.builtin("subgroup_id"), emission.builtin("subgroup_invocation_id")];
  return emission.atEntry("thread_index", `${id} * ${width}u + ${lane}`);
}

/** Whether the order of threads must agree with the hardware's subgroups. */
function countsBySubgroup({ features, usesSubgroups }: Emission): boolean {
  return features.subgroups !== "emulated" && features.subgroupId && usesSubgroups;
}

function builtinExpression(emission: Emission, name: BuiltinName): string {
  const [x, y] = emission.kernel.block;
  const { width } = emission.facts.subgroup;
  const thread = (): string => threadIndex(emission);
  switch (name) {
    case "threadIndexX":
      return emission.kernel.block.every((size, axis) => axis === 0 || size === 1)
        ? thread()
        : `${thread()} % ${x}u`;
    case "threadIndexY":
      return `(${thread()} / ${x}u) % ${y}u`;
    case "threadIndexZ":
      return `${thread()} / ${x * y}u`;
    case "lane":
      return countsBySubgroup(emission)
        ? emission.builtin("subgroup_invocation_id")
        : `${thread()} % ${width}u`;
    // WGSL's own value, where there is one, is known to be the same in all lanes.
    case "subgroupIndex":
      return countsBySubgroup(emission) ? emission.builtin("subgroup_id") : `${thread()} / ${width}u`;
    case "blockIndexX":
      return "block_id.x";
    case "blockIndexY":
      return "block_id.y";
    case "blockIndexZ":
      return "block_id.z";
    case "gridSizeX":
      return "args.grid0";
    case "gridSizeY":
      return "args.grid1";
    case "gridSizeZ":
      return "args.grid2";
    case "clusterRank":
    case "clusterIndexX":
    case "clusterIndexY":
    case "clusterIndexZ":
      return "0u";
    default:
      return name satisfies never;
  }
}

export function emitBuiltin(emission: Emission, node: OperationNode<"builtin">): void {
  const { builtin } = node.attributes;
  const name = emission.atEntry(snakeCase(builtin), `i32(${builtinExpression(emission, builtin)})`);
  emission.define(node.result, { lanes: [name] });
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function argument(emission: Emission, result: IrValue | undefined, slot: number): void {
  const { element } = result!.type;
  const word = `args.slot${slot}`;
  if (element.class === "bool") {
    emission.define(result, { lanes: [emission.atEntry(`argument${slot}`, `${word} != 0u`)] });
    return;
  }
  emission.define(result, isNarrow(element) ? { words: [word] } : { lanes: [word] });
}

export function emitParameter(emission: Emission, node: OperationNode<"parameter">): void {
  argument(emission, node.result, emission.slot("scalar", node.attributes.parameter));
}

export function emitBufferSize(emission: Emission, node: OperationNode<"bufferSize">): void {
  const { parameter, dimension } = node.attributes;
  argument(emission, node.result, emission.slot("size", parameter, dimension));
}

export function emitBufferStride(emission: Emission, node: OperationNode<"bufferStride">): void {
  const { parameter, dimension } = node.attributes;
  argument(emission, node.result, emission.slot("stride", parameter, dimension));
}
