/**
 * @file Which values agree among which threads, and which statements they reach together.
 *
 * A forward analysis over structured control flow. What a value depends on decides: its operands, for a register
 * variable everything written to it and the control that decides whether it is written, for a load its array. Loops and
 * variables are followed until nothing changes.
 */

import { compileErrorAt } from "../ir/error-at.ts";
import { type ElementValue, evaluateOperation, type HostValue, isEvaluable } from "../ir/evaluate.ts";
import type {
  AnyOperation,
  Block,
  IrValue,
  KernelIr,
  LoopNode,
  Operand,
  RegisterVariable,
  Statement,
  WhileNode,
} from "../ir/nodes.ts";
import type { BuiltinName } from "../ir/operations.ts";
import { operations } from "../ir/operations.ts";
import { innerBlocks, visitStatements } from "../ir/parameters.ts";

/** The largest group of threads that certainly agree; "lane" promises nothing. */
export type Uniformity = "grid" | "cluster" | "block" | "subgroup" | "lane";

export interface UniformityAnalysis {
  /** Who agrees on a value. Constants are grid-uniform. */
  readonly value: (operand: Operand) => Uniformity;
  /** Who reaches a statement together: all threads of the group do, or none. */
  readonly control: (statement: Statement) => Uniformity;
}

/** Who agrees on each value; shorthand for {@link analyseControl}'s `value`. */
export function analyseUniformity(kernel: KernelIr): (value: IrValue) => Uniformity {
  return analyseControl(kernel).value;
}

export function analyseControl(kernel: KernelIr): UniformityAnalysis {
  const analyser = new Analyser(kernel);
  return { value: analyser.value, control: analyser.control };
}

const rank: { readonly [Level in Uniformity]: number } = {
  grid: 0,
  cluster: 1,
  block: 2,
  subgroup: 3,
  lane: 4,
};

function worse(a: Uniformity, b: Uniformity): Uniformity {
  return rank[a] >= rank[b] ? a : b;
}

class Analyser {
  private readonly values = new Map<IrValue, Uniformity>();
  private readonly variables = new Map<RegisterVariable, Uniformity>();
  private readonly statements = new Map<Statement, Uniformity>();
  /** What decides how many turns a loop makes: its bounds or test, and the jumps out of its turns. */
  private readonly loops = new Map<Statement, Uniformity>();
  private readonly enclosing: (LoopNode | WhileNode)[] = [];
  /** Threads that have ended are missing from then on. */
  private exits: Uniformity = "grid";
  private changed = false;

  constructor(private readonly kernel: KernelIr) {
    // Each round that goes on raised a variable, a loop or the exits by at least one of four levels. Kernels settle in
    // two or three; what has not after this many is given up as "lane".
    for (let round = 0; round < 12; round++) {
      this.changed = false;
      this.block(kernel.body, "grid");
      if (!this.changed) return;
    }
    for (const variable of kernel.variables) this.variables.set(variable, "lane");
    for (const loop of this.loops.keys()) this.loops.set(loop, "lane");
    this.exits = "lane";
    this.block(kernel.body, "grid");
  }

  readonly value = (operand: Operand): Uniformity => {
    return operand.kind === "constant" ? "grid" : (this.values.get(operand) ?? "lane");
  };

  readonly control = (statement: Statement): Uniformity => this.statements.get(statement) ?? "lane";

  private raise<Key>(map: Map<Key, Uniformity>, key: Key, level: Uniformity): Uniformity {
    const before = map.get(key) ?? "grid";
    const after = worse(before, level);
    if (after !== before) {
      map.set(key, after);
      this.changed = true;
    }
    return after;
  }

  private block(block: Block, control: Uniformity): void {
    // A jump in an earlier statement decides who reaches the later ones.
    let reached = control;
    for (const statement of block.statements) {
      reached = worse(reached, this.exits);
      this.statements.set(statement, reached);
      reached = worse(reached, this.statement(statement, reached));
    }
  }

  /** Follows a statement; returns who still gets past it together. */
  private statement(statement: Statement, control: Uniformity): Uniformity {
    switch (statement.kind) {
      case "operation":
        this.operation(statement, control);
        return "grid";
      case "if": {
        const inner = worse(control, this.value(statement.condition));
        this.block(statement.then, inner);
        this.block(statement.otherwise, inner);
        return this.jumps(statement) ? inner : "grid";
      }
      case "loop":
      case "while":
        this.loop(statement, control);
        return "grid";
      case "break":
      case "continue": {
        const loop = this.enclosing.at(-1);
        if (loop !== undefined) this.raise(this.loops, loop, control);
        return control;
      }
      case "exit":
        if (worse(this.exits, control) !== this.exits) {
          this.exits = worse(this.exits, control);
          this.changed = true;
        }
        return control;
      case "roles":
        for (const role of statement.roles) this.block(role.body, worse(control, "subgroup"));
        return "grid";
      default:
        return statement satisfies never;
    }
  }

  private loop(loop: LoopNode | WhileNode, control: Uniformity): void {
    const bounds =
      loop.kind === "loop" ? [loop.from, loop.to, loop.step].map(this.value).reduce(worse) : "grid";
    const turns = worse(control, this.raise(this.loops, loop, bounds));
    this.enclosing.push(loop);
    if (loop.kind === "loop") {
      // Among the threads in one turn the counter agrees as far as start and step do, but they may be in different turns.
      this.values.set(loop.counter, turns);
      this.block(loop.body, turns);
    } else {
      this.block(loop.condition, turns);
      this.raise(this.loops, loop, this.value(loop.test));
      this.block(loop.body, worse(control, this.loops.get(loop) ?? "grid"));
    }
    this.enclosing.pop();
  }

  private readonly jumping = new Map<Statement, boolean>();

  /** Whether control may leave the turn or the thread from within a statement. */
  private jumps(statement: Statement): boolean {
    const known = this.jumping.get(statement);
    if (known !== undefined) return known;
    const jumps =
      statement.kind === "break" ||
      statement.kind === "continue" ||
      statement.kind === "exit" ||
      innerBlocks(statement).some((block) => block.statements.some((inner) => this.jumps(inner)));
    this.jumping.set(statement, jumps);
    return jumps;
  }

  private operation(operation: AnyOperation, control: Uniformity): void {
    const inputs = operation.operands.map(this.value).reduce(worse, "grid");
    if (operation.result !== undefined)
      this.values.set(operation.result, this.result(operation, inputs, control));
    for (const { variable, access } of operation.registers) {
      if (access === "read") continue;
      const written = operation.name === "writeRegister" ? worse(inputs, control) : "lane";
      this.raise(this.variables, variable, written);
    }
  }

  private result(operation: AnyOperation, inputs: Uniformity, control: Uniformity): Uniformity {
    switch (operation.name) {
      case "builtin":
        return builtinUniformity(operation.attributes.builtin, this.kernel);
      case "readRegister":
        return this.variables.get(operation.registers[0]!.variable) ?? "grid";
      case "load": {
        const { array, cache } = operation.attributes;
        const fixed =
          array.kind === "constant" || (array.kind === "buffer" && array.parameter.access === "read");
        return fixed && cache !== "volatile" ? inputs : "lane";
      }
      case "vote":
      case "ballot":
      case "subgroupReduce":
        // One answer for the lanes that arrive together; if they may arrive apart, nothing is certain.
        return control === "lane" ? "lane" : "subgroup";
      case "shuffle": {
        const [value, source] = operation.operands;
        const broadcast =
          operation.attributes.mode === "index" && operation.attributes.width === this.kernel.subgroupSize;
        if (broadcast && this.value(source!) !== "lane" && control !== "lane") return "subgroup";
        return this.value(value!) === "lane" ? "lane" : this.value(value!);
      }
      default:
        return operations[operation.name].pure ? inputs : "lane";
    }
  }
}

function builtinUniformity(
  name: BuiltinName,
  { block: [x, y, z], cluster, subgroupSize }: KernelIr,
): Uniformity {
  switch (name) {
    case "threadIndexX":
      return x === 1 ? "grid" : "lane";
    // A row of threads that fills whole subgroups shares its y; a plane its z.
    case "threadIndexY":
      return y === 1 ? "grid" : x % subgroupSize === 0 ? "subgroup" : "lane";
    case "threadIndexZ":
      return z === 1 ? "grid" : (x * y) % subgroupSize === 0 ? "subgroup" : "lane";
    case "lane":
      return "lane";
    case "subgroupIndex":
      return x * y * z <= subgroupSize ? "grid" : "subgroup";
    case "blockIndexX":
    case "blockIndexY":
    case "blockIndexZ":
      return "block";
    case "clusterRank":
      return (cluster ?? [1, 1, 1]).every((size) => size === 1) ? "grid" : "block";
    case "clusterIndexX":
    case "clusterIndexY":
    case "clusterIndexZ":
      return "block";
    case "gridSizeX":
    case "gridSizeY":
    case "gridSizeZ":
      return "grid";
    default:
      return name satisfies never;
  }
}

// Convergence ---------------------------------------------------------------------------------------------------------

export interface ConvergenceOptions {
  /** Refuse every block barrier that is not provably reached by the whole block (a WGSL rule). Default false. */
  readonly strict?: boolean | undefined;
}

/**
 * Refuses block barriers that only some threads of a block reach: those under a condition that certainly differs among
 * them, or, when strict, every one not proven to be reached by all. Whether the others are, the simulator sees.
 *
 * @throws CompileError naming the barrier and the branch
 */
export function checkConvergence(kernel: KernelIr, options: ConvergenceOptions = {}): void {
  let barriers = false;
  visitStatements(kernel.body, (statement) => {
    barriers ||= isBlockBarrier(statement);
  });
  if (barriers) new ConvergenceChecker(kernel, options.strict ?? false).block(kernel.body, []);
}

function isBlockBarrier(statement: Statement): boolean {
  return statement.kind === "operation" && operations[statement.name].convergence === "block";
}

/** A statement that decides who reaches its blocks. */
interface Branch {
  readonly site: number;
  /** The truth value it tests. A counted loop has none: its bounds may differ and its number of turns agree. */
  readonly test: Operand | undefined;
  /** All operands that matter. */
  readonly decides: readonly Operand[];
}

class ConvergenceChecker {
  #analysis: UniformityAnalysis | undefined;
  #variation: Variation | undefined;

  constructor(
    private readonly kernel: KernelIr,
    private readonly strict: boolean,
  ) {}

  /** Made when a barrier asks: most kernels have theirs under no condition, and analysing takes as long as generating. */
  private get analysis(): UniformityAnalysis {
    this.#analysis ??= analyseControl(this.kernel);
    return this.#analysis;
  }

  private get variation(): Variation {
    this.#variation ??= new Variation(this.kernel, this.analysis);
    return this.#variation;
  }

  /** `branches` are around the block, outermost first. */
  block(block: Block, branches: readonly Branch[]): void {
    for (const statement of block.statements) {
      if (isBlockBarrier(statement)) this.barrier(statement, branches);
      const branch = branchOf(statement);
      const around = branch === undefined ? branches : [...branches, branch];
      for (const inner of innerBlocks(statement)) this.block(inner, around);
    }
  }

  private barrier(barrier: Statement, branches: readonly Branch[]): void {
    const varying = branches.find(({ test }) => test !== undefined && this.variation.of(test) === "varying");
    if (varying !== undefined) {
      throw compileErrorAt(
        this.kernel,
        "a block barrier under a condition that differs among the block's threads (first the barrier, then the condition); all of them must reach it",
        barrier.site,
        varying.site,
      );
    }
    if (!this.strict || rank[this.analysis.control(barrier)] <= rank.block) return;
    const doubtful = branches.find(({ decides }) =>
      decides.some((operand) => rank[this.analysis.value(operand)] > rank.block),
    );
    throw compileErrorAt(
      this.kernel,
      `a block barrier that is not provably reached by all threads of the block, as this target demands; control is uniform per ${this.analysis.control(barrier)} only`,
      barrier.site,
      doubtful?.site,
    );
  }
}

function branchOf(statement: Statement): Branch | undefined {
  switch (statement.kind) {
    case "if":
      return { site: statement.site, test: statement.condition, decides: [statement.condition] };
    case "while":
      return { site: statement.site, test: statement.test, decides: [statement.test] };
    case "loop":
      return {
        site: statement.site,
        test: undefined,
        decides: [statement.from, statement.to, statement.step],
      };
    default:
      return undefined;
  }
}

/** Whether a value certainly differs among a block's threads, certainly does not, or neither. */
type Verdict = "varying" | "uniform" | "unknown";

/** Operations that map different values to different ones when all other operands agree. */
const injective: ReadonlySet<string> = new Set(["add", "sub", "neg", "not", "bitcast"]);
const comparisons: ReadonlySet<string> = new Set([
  "equal",
  "notEqual",
  "less",
  "lessEqual",
  "greater",
  "greaterEqual",
]);

/**
 * What depends on a thread's position alone is computed for every thread of the block and looked at. A comparison of
 * something that differs with something that does not counts as differing: that is what such comparisons are for.
 */
class Variation {
  private readonly definitions = new Map<IrValue, AnyOperation>();
  private readonly verdicts = new Map<IrValue, Verdict>();
  private readonly perThread = new Map<IrValue, readonly HostValue[] | undefined>();

  constructor(
    private readonly kernel: KernelIr,
    private readonly analysis: UniformityAnalysis,
  ) {
    visitStatements(kernel.body, (statement) => {
      if (statement.kind === "operation" && statement.result !== undefined)
        this.definitions.set(statement.result, statement);
    });
  }

  of(operand: Operand): Verdict {
    if (rank[this.analysis.value(operand)] <= rank.block || operand.kind === "constant") return "uniform";
    const known = this.verdicts.get(operand);
    if (known !== undefined) return known;
    const verdict = this.judge(operand);
    this.verdicts.set(operand, verdict);
    return verdict;
  }

  private judge(value: IrValue): Verdict {
    const threads = this.threads(value);
    if (threads !== undefined)
      return threads.every((one) => Object.is(one, threads[0])) ? "uniform" : "varying";
    const definition = this.definitions.get(value);
    if (definition === undefined || !operations[definition.name].pure) return "unknown";
    const operands = definition.operands.map((operand) => this.of(operand));
    const onlyOne =
      operands.filter((verdict) => verdict === "varying").length === 1 && !operands.includes("unknown");
    if (!onlyOne) return "unknown";
    return injective.has(definition.name) || comparisons.has(definition.name) || isWidening(definition)
      ? "varying"
      : "unknown";
  }

  /** The value in each thread of the block, where position alone decides it. */
  private threads(operand: Operand): readonly HostValue[] | undefined {
    const [x, y, z] = this.kernel.block;
    if (operand.kind === "constant") return new Array<HostValue>(x * y * z).fill(operand.value);
    if (this.perThread.has(operand)) return this.perThread.get(operand);
    const values = this.computeThreads(operand, x * y * z);
    this.perThread.set(operand, values);
    return values;
  }

  private computeThreads(value: IrValue, count: number): readonly HostValue[] | undefined {
    const definition = this.definitions.get(value);
    if (definition === undefined || value.type.lanes !== 1) return undefined;
    if (definition.name === "builtin") return this.builtinThreads(definition.attributes.builtin, count);
    const { name, operands, attributes } = definition;
    if (!isEvaluable(name) || operands.some((operand) => operand.type.lanes !== 1)) return undefined;
    const columns: (readonly HostValue[])[] = [];
    for (const operand of operands) {
      const column = this.threads(operand);
      if (column === undefined) return undefined;
      columns.push(column);
    }
    const types = operands.map((operand) => operand.type);
    return Array.from({ length: count }, (_, thread) => {
      const arguments_ = columns.map((column) => column[thread] as ElementValue);
      return evaluateOperation(name, arguments_, types, value.type, attributes as never);
    });
  }

  private builtinThreads(name: BuiltinName, count: number): readonly HostValue[] | undefined {
    const [x, y] = this.kernel.block;
    const { subgroupSize } = this.kernel;
    const positions: { readonly [Name in BuiltinName]?: (thread: number) => number } = {
      threadIndexX: (thread) => thread % x,
      threadIndexY: (thread) => Math.floor(thread / x) % y,
      threadIndexZ: (thread) => Math.floor(thread / (x * y)),
      lane: (thread) => thread % subgroupSize,
      subgroupIndex: (thread) => Math.floor(thread / subgroupSize),
    };
    const position = positions[name];
    return position && Array.from({ length: count }, (_, thread) => position(thread));
  }
}

/** A conversion that keeps different integers apart. */
function isWidening(definition: AnyOperation): boolean {
  if (definition.name !== "convert") return false;
  const from = definition.operands[0]!.type.element.name;
  const to = definition.result!.type.element.name;
  return (
    (from === "i32" || from === "u32") && (to === "index" || to === "i64" || to === "u64" || to === "f64")
  );
}
