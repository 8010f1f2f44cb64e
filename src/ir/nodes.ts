/**
 * @file The intermediate representation: plain data, a small closed union.
 *
 * A kernel body is structured control flow (if, loop, while, roles) over *operations* in program order. An operation's
 * result is a single-assignment value, visible in its own block and the blocks nested in it; what must outlive a branch
 * or a loop body travels in a *register variable*. Which operations exist, with their attributes, types and effects, is
 * said once, in `operations.ts`.
 */
import type { SourcePosition } from "../errors.ts";
import type { ElementType } from "../types/types.ts";
import type { ConstantTable, Parameter, SharedArray } from "./declarations.ts";
import type { Attributes, OperationName } from "./operations.ts";

export type {
  ArrayReference,
  BufferParameter,
  ConstantTable,
  Parameter,
  ScalarParameter,
  SharedArray,
  SwizzleBytes,
  TensorMapParameter,
} from "./declarations.ts";

/** Elements in one value: 1 is a scalar; a vector holds at most 16 bytes. */
export type Lanes = 1 | 2 | 4 | 8 | 16;

/** Type of a value: an element type and how many of them. */
export interface ValueType {
  readonly element: ElementType;
  readonly lanes: Lanes;
}

/** A single-assignment value: the result of one operation or the counter of one loop. Compared by identity. */
export interface IrValue {
  readonly kind: "value";
  readonly id: number;
  readonly type: ValueType;
}

/** A constant; for a vector type every lane has this value. i64 and u64 constants are bigint, bool is boolean. */
export interface IrConstant {
  readonly kind: "constant";
  readonly value: number | bigint | boolean;
  readonly type: ValueType;
}

export type Operand = IrValue | IrConstant;

/** A named array of registers that lives in each lane: mutable variables (count 1) and matrix fragments. */
export interface RegisterVariable {
  readonly id: number;
  readonly name: string;
  readonly type: ValueType;
  readonly count: number;
}

/** Consecutive elements of a register variable that an operation touches in place. */
export interface RegisterRange {
  readonly variable: RegisterVariable;
  readonly offset: number;
  readonly count: number;
  readonly access: "read" | "write" | "readwrite";
}

/** One operation. `site` indexes {@link KernelIr.positions}. */
export interface OperationNode<Name extends OperationName = OperationName> {
  readonly kind: "operation";
  readonly name: Name;
  readonly result: IrValue | undefined;
  readonly operands: readonly Operand[];
  readonly registers: readonly RegisterRange[];
  readonly attributes: Attributes[Name];
  readonly site: number;
}

/** An operation node discriminated by name, so that a `switch` on `name` narrows `attributes`. */
export type AnyOperation = { readonly [Name in OperationName]: OperationNode<Name> }[OperationName];

export interface IfNode {
  readonly kind: "if";
  readonly condition: Operand;
  readonly then: Block;
  readonly otherwise: Block;
  readonly site: number;
}

/**
 * Counted loop: `for (counter = from; counter < to; counter += step)`, `step` > 0. Bounds and step are evaluated once, before the loop.
 * `to` + `step` must fit the counter's type: passes take it that counters never wrap.
 */
export interface LoopNode {
  readonly kind: "loop";
  readonly counter: IrValue;
  readonly from: Operand;
  readonly to: Operand;
  readonly step: Operand;
  readonly body: Block;
  readonly site: number;
}

/** `test` is computed by `condition` before each turn. */
export interface WhileNode {
  readonly kind: "while";
  readonly condition: Block;
  readonly test: Operand;
  readonly body: Block;
  readonly site: number;
}

/** Leaves the innermost loop or while, goes to its next turn, or ends the thread. */
export interface JumpNode {
  readonly kind: "break" | "continue" | "exit";
  readonly site: number;
}

/** One role of a {@link RolesNode}: consecutive warps starting at `firstWarp`. */
export interface Role {
  readonly name: string;
  readonly firstWarp: number;
  readonly warps: number;
  /** Registers per thread to hold while in this role (setmaxnreg), or undefined to leave them alone. */
  readonly registers: { readonly count: number; readonly direction: "increase" | "decrease" } | undefined;
  readonly body: Block;
}

/** Splits the block's warps once, at top level; the last statement of the kernel that all warps reach together. */
export interface RolesNode {
  readonly kind: "roles";
  readonly roles: readonly Role[];
  readonly site: number;
}

export type Statement = AnyOperation | IfNode | LoopNode | WhileNode | JumpNode | RolesNode;

export interface Block {
  readonly statements: readonly Statement[];
}

/** A traced kernel. */
export interface KernelIr {
  /** Matches /^[A-Za-z][A-Za-z0-9_]{0,62}$/. */
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly shared: readonly SharedArray[];
  /** Bytes of the shared arena. */
  readonly sharedBytes: number;
  /** Alignment the arena needs (1024 for 128-byte swizzle). */
  readonly sharedAlignment: number;
  readonly constants: readonly ConstantTable[];
  readonly variables: readonly RegisterVariable[];
  /** Threads per block; all three are compile-time constants. */
  readonly block: readonly [number, number, number];
  /** Blocks per cluster, or undefined for none. */
  readonly cluster: readonly [number, number, number] | undefined;
  /** Subgroup width that this trace was made for. */
  readonly subgroupSize: number;
  /** Resident blocks per multiprocessor that the register allocator should leave room for; undefined says nothing. */
  readonly blocksPerMultiprocessor: number | undefined;
  readonly body: Block;
  /** Number of value ids and sites handed out; ids are dense. */
  readonly valueCount: number;
  /** Author's positions by site; a side table, never part of any generated text or hash. */
  readonly positions: readonly (SourcePosition | undefined)[];
}

/** The scalar type of an element. */
export function scalar(element: ElementType): ValueType {
  return { element, lanes: 1 };
}
