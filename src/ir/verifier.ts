/**
 * @file Checks that a traced kernel is well formed, so that everything after may take it for granted. Each message says
 * what is wrong and names the author's lines.
 */
import { fits } from "../types/convert.ts";
import { byteSize } from "../types/types.ts";
import { checkAsynchronousProducts } from "./asynchronous.ts";
import { traceErrorAt } from "./error-at.ts";
import type {
  AnyOperation,
  Block,
  IrConstant,
  IrValue,
  KernelIr,
  LoopNode,
  Operand,
  RegisterRange,
  Role,
  RolesNode,
  SharedArray,
  Statement,
} from "./nodes.ts";
import { type OperationName, operations } from "./operations.ts";
import { innerBlocks, visitStatements } from "./parameters.ts";
import { printType } from "./printer.ts";
import { type TypingContext, typingError } from "./typing.ts";

/** Names that generated text may hold. */
const nameForm = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;

/**
 * Checks a traced kernel.
 *
 * @throws TraceError naming the lines, if the kernel is not well formed
 */
export function verify(kernel: KernelIr): void {
  verifyOptimised(kernel);
  checkConstantPositions(kernel);
  checkUnusedComparisons(kernel);
}

/**
 * The part of {@link verify} that holds after passes too: these may leave accesses that are never executed outside
 * their array, and drop what consumed a comparison.
 */
export function verifyOptimised(kernel: KernelIr): void {
  checkDeclarations(kernel);
  new Verifier(kernel).block(kernel.body, topLevel);
  checkAsynchronousProducts(kernel);
}

// Declarations --------------------------------------------------------------------------------------------------------

function checkDeclarations(kernel: KernelIr): void {
  const refuse = (message: string): never => {
    throw traceErrorAt(kernel, message);
  };
  checkName(kernel, "kernel", kernel.name);
  checkDistinct(kernel, "parameter", kernel.parameters);
  const names = new Set<string>();
  for (const { name } of kernel.parameters) {
    if (names.has(name)) refuse(`two parameters are named ${name}`);
    names.add(name);
  }
  for (const array of kernel.shared) checkShared(kernel, array);
  checkDistinct(kernel, "shared array", kernel.shared);
  checkDistinct(kernel, "variable", kernel.variables);
  for (const variable of kernel.variables) {
    const { element, lanes } = variable.type;
    if (!Number.isInteger(variable.count) || variable.count < 1)
      refuse(`variable ${variable.name} has ${variable.count} elements`);
    if (lanes * element.bits > 128)
      refuse(`variable ${variable.name} holds ${printType(variable.type)}, wider than 16 bytes`);
  }
  checkDistinct(kernel, "constant table", kernel.constants);
  for (const table of kernel.constants) {
    for (const value of table.values) {
      if (!fits(value, table.element))
        refuse(`constant table ${table.name}: ${table.element.name} cannot hold ${value}`);
    }
  }
  for (const [axis, size] of kernel.block.entries()) {
    if (!Number.isInteger(size) || size < 1) refuse(`the block's size along ${"xyz"[axis]} is ${size}`);
  }
  for (const size of kernel.cluster ?? []) {
    if (!Number.isInteger(size) || size < 1) refuse(`the cluster has size ${size}`);
  }
}

function checkName(kernel: KernelIr, what: string, name: string): void {
  if (nameForm.test(name)) return;
  throw traceErrorAt(
    kernel,
    `${what} name ${JSON.stringify(name)}: names are letters, digits and underscores, start with a letter and have at most 63 characters`,
  );
}

function checkDistinct(
  kernel: KernelIr,
  what: string,
  items: readonly { readonly id: number; readonly name: string }[],
): void {
  const ids = new Set<number>();
  for (const { id, name } of items) {
    checkName(kernel, what, name);
    if (ids.has(id)) throw traceErrorAt(kernel, `two ${what}s have the id ${id}; ${name} is the second`);
    ids.add(id);
  }
}

function checkShared(kernel: KernelIr, array: SharedArray): void {
  const { name, element, length, byteOffset } = array;
  const size = byteSize(element);
  const end = byteOffset + length * size;
  if (byteOffset < 0 || end > kernel.sharedBytes) {
    throw traceErrorAt(
      kernel,
      `shared array ${name} takes bytes ${byteOffset} to ${end} of an arena of ${kernel.sharedBytes}`,
    );
  }
  if (byteOffset % size !== 0) {
    throw traceErrorAt(
      kernel,
      `shared array ${name} starts at byte ${byteOffset}, not a multiple of its elements' ${size} bytes`,
    );
  }
  if (array.purpose === "barrier" && element.name !== "u64") {
    throw traceErrorAt(kernel, `shared array ${name} holds barriers, which are u64, not ${element.name}`);
  }
}

// Statements ----------------------------------------------------------------------------------------------------------

/** Where a block lies. */
interface Place {
  readonly top: boolean;
  readonly insideLoop: boolean;
  /** The roles split around it. */
  readonly roles: RolesNode | undefined;
}

const topLevel: Place = { top: true, insideLoop: false, roles: undefined };

class Verifier {
  private readonly context: TypingContext;
  private readonly variables: ReadonlySet<unknown>;
  /** Site of each value's definition, wherever it is. */
  private readonly definitions = new Map<IrValue, number>();
  private readonly visible = new Set<IrValue>();
  private roles: RolesNode | undefined;

  constructor(private readonly kernel: KernelIr) {
    this.context = {
      kernel,
      parameters: new Map(kernel.parameters.map((parameter) => [parameter.id, parameter])),
    };
    this.variables = new Set(kernel.variables);
    this.collectDefinitions();
  }

  private collectDefinitions(): void {
    const ids = new Map<number, number>();
    const define = (value: IrValue, site: number): void => {
      const earlier = ids.get(value.id);
      if (earlier !== undefined) this.refuse(`two operations define value ${value.id}`, earlier, site);
      if (value.id < 0 || value.id >= this.kernel.valueCount)
        this.refuse(`value ${value.id} is not among the kernel's ${this.kernel.valueCount}`, site);
      ids.set(value.id, site);
      this.definitions.set(value, site);
    };
    visitStatements(this.kernel.body, (statement) => {
      if (statement.kind === "operation" && statement.result !== undefined)
        define(statement.result, statement.site);
      if (statement.kind === "loop") define(statement.counter, statement.site);
    });
  }

  private refuse(message: string, ...sites: readonly (number | undefined)[]): never {
    throw traceErrorAt(this.kernel, message, ...sites);
  }

  /** Checks a block; values it makes end with it. */
  block(block: Block, place: Place, more: () => void = () => {}): void {
    const made: IrValue[] = [];
    for (const [position, statement] of block.statements.entries()) {
      const value = this.statement(statement, place, position === block.statements.length - 1);
      if (value === undefined) continue;
      this.visible.add(value);
      made.push(value);
    }
    more();
    for (const value of made) this.visible.delete(value);
  }

  /** Checks a statement; returns the value it makes. */
  private statement(statement: Statement, place: Place, last: boolean): IrValue | undefined {
    const inner: Place = { ...place, top: false };
    switch (statement.kind) {
      case "operation":
        this.operation(statement, place);
        return statement.result;
      case "if":
        this.condition(statement.condition, "an if", statement.site);
        this.block(statement.then, inner);
        this.block(statement.otherwise, inner);
        return undefined;
      case "loop":
        this.loop(statement, inner);
        return undefined;
      case "while":
        this.block(statement.condition, { ...inner, insideLoop: false }, () =>
          this.condition(statement.test, "a while", statement.site),
        );
        this.block(statement.body, { ...inner, insideLoop: true });
        return undefined;
      case "break":
      case "continue":
        if (!place.insideLoop) this.refuse(`${statement.kind} outside a loop`, statement.site);
        return undefined;
      case "exit":
        return undefined;
      case "roles":
        this.rolesSplit(statement, place, last);
        return undefined;
      default:
        return statement satisfies never;
    }
  }

  private condition(operand: Operand, what: string, site: number): void {
    this.operand(operand, site);
    if (operand.type.element.name !== "bool" || operand.type.lanes !== 1) {
      this.refuse(`${what} tests a ${printType(operand.type)}; it needs a bool`, site);
    }
  }

  private loop(loop: LoopNode, inner: Place): void {
    const { type } = loop.counter;
    if (type.lanes !== 1 || !["i32", "u32", "index"].includes(type.element.name)) {
      this.refuse(`a loop counts in i32, u32 or index, not ${printType(type)}`, loop.site);
    }
    for (const [name, bound] of [
      ["from", loop.from],
      ["to", loop.to],
      ["step", loop.step],
    ] as const) {
      this.operand(bound, loop.site);
      if (bound.type.element.name !== type.element.name || bound.type.lanes !== 1) {
        this.refuse(
          `a loop that counts in ${printType(type)} has a ${name} of type ${printType(bound.type)}`,
          loop.site,
        );
      }
    }
    if (loop.step.kind === "constant" && !(Number(loop.step.value) > 0)) {
      this.refuse(`a loop's step is positive, not ${String(loop.step.value)}`, loop.site);
    }
    this.visible.add(loop.counter);
    this.block(loop.body, { ...inner, insideLoop: true });
    this.visible.delete(loop.counter);
  }

  private operand(operand: Operand, site: number): void {
    if (operand.kind === "constant") {
      this.constant(operand, site);
      return;
    }
    if (this.visible.has(operand)) return;
    const definition = this.definitions.get(operand);
    if (definition === undefined) this.refuse("a value of another kernel is used here", site);
    this.refuse(
      "a value is used outside the block where it was made (first the use, then where it was made); carry it out in a variable",
      site,
      definition,
    );
  }

  private constant({ value, type }: IrConstant, site: number): void {
    const { element } = type;
    const form =
      element.name === "bool"
        ? "boolean"
        : element.name === "i64" || element.name === "u64"
          ? "bigint"
          : "number";
    // Expressed by `typeof` first: `fits` takes a number for an i64, but no emitter does.
    if (typeof value !== form || !fits(value, element)) {
      this.refuse(`${element.name} cannot hold the constant ${String(value)} (a ${typeof value})`, site);
    }
  }

  private operation(operation: AnyOperation, place: Place): void {
    for (const operand of operation.operands) this.operand(operand, operation.site);
    for (const range of operation.registers) this.range(range, operation);
    const complaint = typingError(operation, this.context);
    if (complaint !== undefined) this.refuse(complaint, operation.site);
    if (place.roles !== undefined && operations[operation.name].convergence === "block") {
      this.refuse(
        "a block barrier inside a role, where the block's other warps never arrive; named barriers and mbarriers serve",
        operation.site,
        place.roles.site,
      );
    }
  }

  private range(range: RegisterRange, operation: AnyOperation): void {
    const { variable, offset, count } = range;
    if (!this.variables.has(variable))
      this.refuse(`variable ${variable.name} is not part of this kernel`, operation.site);
    const whole = Number.isInteger(offset) && Number.isInteger(count) && offset >= 0 && count >= 1;
    if (!whole || offset + count > variable.count) {
      this.refuse(
        `${operation.name} touches elements ${offset} to ${offset + count - 1} of variable ${variable.name}, which has ${variable.count}`,
        operation.site,
      );
    }
  }

  // Roles -------------------------------------------------------------------------------------------------------------

  private rolesSplit(split: RolesNode, place: Place, last: boolean): void {
    if (place.roles !== undefined)
      this.refuse("roles inside a role; split the block once", split.site, place.roles.site);
    if (!place.top)
      this.refuse("roles inside control flow; split the block at the kernel's top level", split.site);
    if (this.roles !== undefined)
      this.refuse("the block is split into roles a second time", split.site, this.roles.site);
    if (!last)
      this.refuse("something follows the split into roles; put it before, or into the roles", split.site);
    this.roles = split;
    this.roleWarps(split);
    for (const role of split.roles) {
      checkName(this.kernel, "role", role.name);
      this.roleRegisters(split, role);
      this.block(role.body, { top: false, insideLoop: false, roles: split });
    }
  }

  private roleWarps(split: RolesNode): void {
    const [x, y, z] = this.kernel.block;
    const warps = Math.ceil((x * y * z) / this.kernel.subgroupSize);
    const owner: (string | undefined)[] = new Array(warps).fill(undefined);
    for (const { name, firstWarp, warps: count } of split.roles) {
      if (
        !Number.isInteger(firstWarp) ||
        !Number.isInteger(count) ||
        firstWarp < 0 ||
        count < 1 ||
        firstWarp + count > warps
      ) {
        this.refuse(
          `role ${name} takes warps ${firstWarp} to ${firstWarp + count - 1}; the block has ${warps}`,
          split.site,
        );
      }
      for (let warp = firstWarp; warp < firstWarp + count; warp++) {
        if (owner[warp] !== undefined)
          this.refuse(`roles ${owner[warp]} and ${name} both take warp ${warp}`, split.site);
        owner[warp] = name;
      }
    }
  }

  private roleRegisters(split: RolesNode, { name, registers }: Role): void {
    if (registers === undefined) return;
    const { count } = registers;
    if (!Number.isInteger(count) || count % 8 !== 0 || count < 24 || count > 256) {
      this.refuse(
        `role ${name} asks for ${count} registers; it must be a multiple of 8 from 24 to 256`,
        split.site,
      );
    }
  }
}

// Constant positions --------------------------------------------------------------------------------------------------

/** Accesses whose position is known: within their array, and vectors aligned. */
function checkConstantPositions(kernel: KernelIr): void {
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation") return;
    if (statement.name !== "load" && statement.name !== "store" && statement.name !== "atomic") return;
    const [position] = statement.operands;
    if (position?.kind !== "constant") return;
    const { array, offset } = statement.attributes;
    const start = Number(position.value) + offset;
    const { lanes } = statement.name === "load" ? statement.result!.type : statement.operands[1]!.type;
    const length =
      array.kind === "shared"
        ? array.array.length
        : array.kind === "constant"
          ? array.table.values.length
          : undefined;
    const name =
      array.kind === "shared"
        ? array.array.name
        : array.kind === "constant"
          ? array.table.name
          : array.parameter.name;
    if (start < 0 || (length !== undefined && start + lanes > length)) {
      const holds = length === undefined ? "starts at 0" : `has ${length}`;
      throw traceErrorAt(
        kernel,
        `${statement.name} of element ${start + lanes - 1 < 0 || lanes === 1 ? start : start + lanes - 1} of ${name}, which ${holds}`,
        statement.site,
      );
    }
    if (lanes > 1) checkAlignment(kernel, statement, start, lanes);
  });
}

function checkAlignment(
  kernel: KernelIr,
  operation: AnyOperation & { readonly name: "load" | "store" | "atomic" },
  start: number,
  lanes: number,
): void {
  const { array } = operation.attributes;
  if (array.kind === "constant") return;
  const element = array.kind === "shared" ? array.array.element : array.parameter.element;
  const name = array.kind === "shared" ? array.array.name : array.parameter.name;
  const bytes = lanes * byteSize(element);
  const address = (array.kind === "shared" ? array.array.byteOffset : 0) + start * byteSize(element);
  if (address % bytes === 0) return;
  throw traceErrorAt(
    kernel,
    `${operation.name} of ${lanes} x ${element.name} at element ${start} of ${name} is not aligned to its ${bytes} bytes`,
    operation.site,
  );
}

// Unused comparisons --------------------------------------------------------------------------------------------------

const truthOperations: ReadonlySet<OperationName> = new Set([
  "equal",
  "notEqual",
  "less",
  "lessEqual",
  "greater",
  "greaterEqual",
  "isNaN",
  "and",
  "or",
  "xor",
  "not",
]);

/**
 * A truth value that nothing consumes was most likely meant for a JavaScript `if`, which cannot see it.
 *
 * @throws TraceError at the comparison's line
 */
export function checkUnusedComparisons(kernel: KernelIr): void {
  const unused = new Map<IrValue, AnyOperation>();
  const consume = (operand: Operand): void => {
    if (operand.kind === "value") unused.delete(operand);
  };
  walk(kernel.body);
  const [idle] = unused.values();
  if (idle !== undefined) {
    throw traceErrorAt(
      kernel,
      "nothing consumes this comparison; a JS `if` cannot test it, write `when` or `select`",
      idle.site,
    );
  }

  function walk(block: Block): void {
    for (const statement of block.statements) {
      switch (statement.kind) {
        case "operation":
          statement.operands.forEach(consume);
          if (statement.result?.type.element.name === "bool" && truthOperations.has(statement.name)) {
            unused.set(statement.result, statement);
          }
          break;
        case "if":
          consume(statement.condition);
          break;
        case "loop":
          [statement.from, statement.to, statement.step].forEach(consume);
          break;
      }
      for (const inner of innerBlocks(statement)) walk(inner);
      if (statement.kind === "while") consume(statement.test);
    }
  }
}
