/**
 * @file The representation as text that people can read.
 *
 * The text is complete (two kernels that print alike generate the same code) and deterministic: values are renumbered in
 * the order of their definitions, attributes come in alphabetical order and only where they differ from the default, and
 * source positions are left out.
 */
import type {
  AnyOperation,
  ArrayReference,
  Block,
  IrConstant,
  IrValue,
  KernelIr,
  Operand,
  Parameter,
  RegisterRange,
  RegisterVariable,
  Role,
  SharedArray,
  Statement,
  ValueType,
} from "./nodes.ts";

/** `f32`, or `f32x4` for a vector. */
export function printType(type: ValueType): string {
  return type.lanes === 1 ? type.element.name : `${type.element.name}x${type.lanes}`;
}

/** A number as the text shows it; keeps the sign of zero. */
function printNumber(value: number | bigint | boolean): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** A kernel as text, one statement a line. */
export function print(kernel: KernelIr): string {
  return new Printer(kernel).kernel();
}

/** Attributes with these values are not shown. */
const defaults: Readonly<Record<string, unknown>> = {
  offset: 0,
  targetOffset: 0,
  sourceOffset: 0,
  barrierOffset: 0,
  cache: "default",
  multicast: false,
  negateA: false,
  negateB: false,
};

class Printer {
  private readonly lines: string[] = [];
  private readonly values = new Map<IrValue, string>();
  private readonly variables: ReadonlyMap<RegisterVariable, string>;
  private readonly shared: ReadonlyMap<SharedArray, string>;
  private readonly tables: ReadonlyMap<unknown, string>;
  private readonly parameters: ReadonlyMap<Parameter, string>;
  private readonly parameterIds: ReadonlyMap<number, string>;

  constructor(private readonly ir: KernelIr) {
    this.variables = numbered(ir.variables);
    this.shared = numbered(ir.shared);
    this.tables = numbered(ir.constants);
    this.parameters = new Map(ir.parameters.map((parameter) => [parameter, parameter.name]));
    this.parameterIds = new Map(ir.parameters.map((parameter) => [parameter.id, parameter.name]));
  }

  kernel(): string {
    const { ir } = this;
    this.lines.push(`kernel ${ir.name} {`);
    this.line(1, `block ${ir.block.join(" ")}`);
    if (ir.cluster !== undefined) this.line(1, `cluster ${ir.cluster.join(" ")}`);
    this.line(1, `subgroup ${ir.subgroupSize}`);
    if (ir.blocksPerMultiprocessor !== undefined) {
      this.line(1, `blocks per multiprocessor ${ir.blocksPerMultiprocessor}`);
    }
    if (ir.sharedBytes > 0) this.line(1, `arena ${ir.sharedBytes} bytes, aligned to ${ir.sharedAlignment}`);
    for (const parameter of ir.parameters) this.line(1, `parameter ${printParameter(parameter)}`);
    for (const array of ir.shared) {
      const purpose = array.purpose === "data" ? "" : ` for ${array.purpose}`;
      this.line(
        1,
        `shared ${this.shared.get(array)}: ${array.element.name}[${array.length}] at ${array.byteOffset}${purpose}`,
      );
    }
    for (const table of ir.constants) {
      const values = table.values.map(printNumber).join(", ");
      this.line(
        1,
        `constant ${this.tables.get(table)}: ${table.element.name}[${table.values.length}] = ${values}`,
      );
    }
    for (const variable of ir.variables) {
      const count = variable.count === 1 ? "" : `[${variable.count}]`;
      this.line(1, `variable ${this.variables.get(variable)}: ${printType(variable.type)}${count}`);
    }
    this.block(1, ir.body);
    this.lines.push("}", "");
    return this.lines.join("\n");
  }

  private line(depth: number, text: string): void {
    this.lines.push("  ".repeat(depth) + text);
  }

  private block(depth: number, block: Block): void {
    for (const statement of block.statements) this.statement(depth, statement);
  }

  private statement(depth: number, statement: Statement): void {
    switch (statement.kind) {
      case "operation":
        this.line(depth, this.operation(statement));
        return;
      case "if":
        this.line(depth, `if ${this.operand(statement.condition)} {`);
        this.block(depth + 1, statement.then);
        if (statement.otherwise.statements.length > 0) {
          this.line(depth, "} else {");
          this.block(depth + 1, statement.otherwise);
        }
        this.line(depth, "}");
        return;
      case "loop": {
        const from = this.operand(statement.from);
        const to = this.operand(statement.to);
        const step = this.operand(statement.step);
        const counter = this.define(statement.counter);
        this.line(
          depth,
          `loop ${counter} ${printType(statement.counter.type)} from ${from} to ${to} step ${step} {`,
        );
        this.block(depth + 1, statement.body);
        this.line(depth, "}");
        return;
      }
      case "while":
        this.line(depth, "while {");
        this.block(depth + 1, statement.condition);
        this.line(depth, `} test ${this.operand(statement.test)} {`);
        this.block(depth + 1, statement.body);
        this.line(depth, "}");
        return;
      case "break":
      case "continue":
      case "exit":
        this.line(depth, statement.kind);
        return;
      case "roles":
        this.line(depth, "roles {");
        for (const role of statement.roles) this.role(depth + 1, role);
        this.line(depth, "}");
        return;
      default:
        statement satisfies never;
    }
  }

  private role(depth: number, role: Role): void {
    const registers =
      role.registers === undefined ? "" : ` ${role.registers.direction} registers to ${role.registers.count}`;
    this.line(depth, `role ${role.name} warps ${role.firstWarp}+${role.warps}${registers} {`);
    this.block(depth + 1, role.body);
    this.line(depth, "}");
  }

  private operation(operation: AnyOperation): string {
    const { result } = operation;
    const words: string[] = [operation.name];
    if (result !== undefined) words.push(printType(result.type));
    const operands = operation.operands.map((operand) => this.operand(operand, result?.type)).join(", ");
    if (operands !== "") words.push(operands);
    const registers = operation.registers.map((range) => this.range(range)).join(", ");
    if (registers !== "") words.push(`(${registers})`);
    const attributes = this.attributes(operation.attributes);
    if (attributes !== "") words.push(`{${attributes}}`);
    const text = words.join(" ");
    return result === undefined ? text : `${this.define(result)} = ${text}`;
  }

  private define(value: IrValue): string {
    const name = `%${this.values.size}`;
    this.values.set(value, name);
    return name;
  }

  /** A constant shows its type unless it is `implied`. */
  private operand(operand: Operand, implied?: ValueType): string {
    if (operand.kind === "value") return this.values.get(operand) ?? `%undefined${operand.id}`;
    return this.constant(operand, implied);
  }

  private constant({ value, type }: IrConstant, implied: ValueType | undefined): string {
    const known = implied !== undefined && implied.element === type.element && implied.lanes === type.lanes;
    return known ? printNumber(value) : `${printNumber(value)}:${printType(type)}`;
  }

  private range(range: RegisterRange): string {
    const name = this.variables.get(range.variable) ?? `${range.variable.name}.undeclared`;
    const elements = range.count === 1 ? `${range.offset}` : `${range.offset}+${range.count}`;
    return `${range.access} ${name}[${elements}]`;
  }

  private attributes(attributes: object): string {
    const shown: string[] = [];
    for (const key of Object.keys(attributes).sort()) {
      const value: unknown = attributes[key as keyof typeof attributes];
      if (value === undefined || (key in defaults && defaults[key] === value)) continue;
      shown.push(`${key} ${this.attribute(key, value)}`);
    }
    return shown.join(", ");
  }

  /** An attribute: an entity of the kernel by its name, anything else as it is. */
  private attribute(key: string, value: unknown): string {
    if (typeof value === "string") return key === "message" ? JSON.stringify(value) : value;
    if (typeof value !== "object" || value === null) {
      return key === "parameter" ? (this.parameterIds.get(value as number) ?? String(value)) : String(value);
    }
    if (Array.isArray(value)) return JSON.stringify(value);
    const shared = this.shared.get(value as SharedArray);
    if (shared !== undefined) return shared;
    const parameter = this.parameters.get(value as Parameter);
    if (parameter !== undefined) return parameter;
    if ("kind" in value) return this.reference(value as ArrayReference);
    if ("class" in value && "name" in value) return String(value.name);
    return `{${this.attributes(value)}}`;
  }

  private reference(reference: ArrayReference): string {
    switch (reference.kind) {
      case "buffer":
        return this.parameters.get(reference.parameter) ?? `${reference.parameter.name}.undeclared`;
      case "shared":
        return this.shared.get(reference.array) ?? `${reference.array.name}.undeclared`;
      case "constant":
        return this.tables.get(reference.table) ?? `${reference.table.name}.undeclared`;
      default:
        return reference satisfies never;
    }
  }
}

/** Names suffixed by their position, hence unique and apart from parameters' names. */
function numbered<T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<T, string> {
  return new Map(items.map((item, position) => [item, `${item.name}.${position}`]));
}

function printParameter(parameter: Parameter): string {
  switch (parameter.kind) {
    case "buffer":
      return `${parameter.name}: ${parameter.access} ${parameter.element.name}, rank ${parameter.rank}`;
    case "scalar":
      return `${parameter.name}: ${parameter.element.name}`;
    case "tensorMap":
      return (
        `${parameter.name}: tensor map ${parameter.windows ? "of windows " : ""}${parameter.element.name}, rank ${parameter.rank}, ` +
        `box ${parameter.box.join(" ")}, swizzle ${parameter.swizzle}` +
        (parameter.rounding === undefined ? "" : `, rounded to ${parameter.rounding}`)
      );
    default:
      return parameter satisfies never;
  }
}
