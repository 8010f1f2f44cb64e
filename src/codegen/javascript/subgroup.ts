/**
 * @file The subgroup's function: a generator that walks the kernel's control flow with *sets of lanes*. A branch splits
 * the set, a loop's set shrinks as its lanes leave; lanes meet again at the end of the statement that parted them. What
 * lanes do alone are calls of regions.
 */
import type { Block, IfNode, LoopNode, Operand, RolesNode, Statement, WhileNode } from "../../ir/nodes.ts";
import { innerBlocks } from "../../ir/parameters.ts";
import type { Emission } from "./emission.ts";
import { instructionClass } from "./instruction-classes.ts";
import { Region } from "./region.ts";
import { emitStatements, stepped } from "./statements.ts";
import { bankOf } from "./storage.ts";
import { isSpinning } from "./structure.ts";
import { subgroupOperationText } from "./subgroup-operations.ts";

/** Writes the generator. */
export class SubgroupWriter {
  private readonly lines: string[] = [];
  private names = 0;

  constructor(private readonly emission: Emission) {}

  /** The text of the whole function. */
  write(body: Block): string {
    this.lines.push("function* main(W) {", "let m0 = W.live;");
    this.block(body, "m0", undefined);
    this.lines.push("}");
    return this.lines.join("\n");
  }

  private fresh(prefix: string): string {
    return `${prefix}${++this.names}`;
  }

  private line(text: string): void {
    this.lines.push(text);
  }

  /** Emits a block for the lanes of `m`, a `let` that shrinks as lanes jump away. `loop` is the innermost one around. */
  private block(block: Block, m: string, loop: number | undefined): void {
    const label = this.fresh("B");
    let set: number | undefined;
    this.line(`${label}: {`);
    for (const segment of this.emission.structure.segmentsOf(block)) {
      const statements = segment.kind === "region" ? segment.statements : [segment.statement];
      if (segment.kind === "region") this.region(segment.id, segment.statements, m, loop);
      else this.statement(segment.statement, m, loop);
      if (!statements.some((statement) => jumpsOut(statement, false))) continue;
      set ??= this.emission.newSet();
      this.line(`if ((${m} = remaining(W, ${m}, ${set})).count === 0) break ${label};`);
    }
    this.line("}");
  }

  private region(id: number, statements: readonly Statement[], m: string, loop: number | undefined): void {
    const region = new Region(this.emission, loop);
    emitStatements(region, statements);
    this.emission.functions.push(region.finish(`r${id}`));
    this.line(`r${id}(W, ${m});`);
  }

  private statement(statement: Statement, m: string, loop: number | undefined): void {
    switch (statement.kind) {
      case "operation":
        this.count(statement, m);
        this.line(subgroupOperationText(this.emission, statement, m));
        return;
      case "if":
        this.if(statement, m, loop);
        return;
      case "loop":
        this.loop(statement, m);
        return;
      case "while":
        this.while(statement, m);
        return;
      case "roles":
        this.roles(statement, m);
        return;
      default:
        throw new RangeError(`${statement.kind} belongs to a region`);
    }
  }

  private count(statement: Statement, m: string): void {
    if (!this.emission.mode.counters) return;
    const cls = instructionClass(statement);
    if (cls !== undefined) this.line(`W.counters.instructions.${cls} += ${m}.count;`);
  }

  private if(statement: IfNode, m: string, loop: number | undefined): void {
    if (statement.condition.kind === "constant") {
      const taken = statement.condition.value === true ? statement.then : statement.otherwise;
      this.branch(taken, m, loop);
      return;
    }
    const [yes, no] = [this.emission.newSet(), this.emission.newSet()];
    const slot = this.emission.storage.valueSlot(statement.condition);
    this.count(statement, m);
    this.line(`split(W, ${m}, ${slot}, W.sets[${yes}], W.sets[${no}], ${statement.site});`);
    const ways: (readonly [Block, number])[] = [
      [statement.then, yes],
      [statement.otherwise, no],
    ];
    // A way without waiting goes first: its lanes may exit, and then the others are all there are.
    if (!this.emission.structure.blockSuspends(statement.otherwise)) ways.reverse();
    for (const [block, set] of ways) this.branch(block, `W.sets[${set}]`, loop);
  }

  private branch(block: Block, lanes: string, loop: number | undefined): void {
    if (block.statements.length === 0) return;
    const m = this.fresh("m");
    this.line(`if (${lanes}.count > 0) { let ${m} = ${lanes};`);
    this.block(block, m, loop);
    this.line("}");
  }

  private loop(loop: LoopNode, m: string): void {
    const { storage } = this.emission;
    const number = this.emission.newLoop();
    const counter = storage.valueSlot(loop.counter);
    const bank = bankOf(loop.counter.type.element);
    const cell = `${bank}[${counter} + lane]`;
    const current = loop.counter.type.element.name === "u32" ? `(${cell} >>> 0)` : cell;
    const start = this.helper("s", (region) => region.line(`${cell} = ${region.operand(loop.from)};`), bank);
    const step = this.helper(
      "n",
      (region) => {
        region.line(`${cell} = ${stepped(loop.counter.type.element, current, region.operand(loop.step))};`);
      },
      bank,
    );
    const test = this.filter((region) => `${current} < ${region.operand(loop.to)}`, loop.site, bank);
    this.line(`${start}(W, ${m});`);
    this.turns(
      loop,
      m,
      number,
      (lanes) => this.line(`${test}(W, ${lanes});`),
      () => this.block(loop.body, this.inner, number),
      step,
    );
  }

  /** The set of the loop body that is being written. */
  private inner = "";

  /** `for (;;)` over a set that shrinks; lanes meet again behind it. */
  private turns(
    statement: LoopNode | WhileNode,
    m: string,
    number: number,
    test: (lanes: string) => void,
    body: () => void,
    step?: string,
  ): void {
    const [set, after] = [this.emission.newSet(), this.emission.newSet()];
    const lanes = this.fresh("m");
    const inner = this.fresh("m");
    this.line(`{ let ${lanes} = copied(${m}, W.sets[${set}]);`);
    this.line("for (;;) {");
    this.count(statement, lanes);
    test(lanes);
    this.line(`if (${lanes}.count === 0) break;`);
    this.line(`let ${inner} = ${lanes};`);
    this.inner = inner;
    body();
    this.line(`goOn(W, ${lanes}, ${number});`);
    this.line(`if (${lanes}.count === 0) break;`);
    if (step !== undefined) this.line(`${step}(W, ${lanes});`);
    this.line("}");
    this.line(`${m} = leftLoop(W, ${m}, W.sets[${after}], ${number}); }`);
  }

  private while(loop: WhileNode, m: string): void {
    const number = this.emission.newLoop();
    const condition = (lanes: string): void => {
      const tested = this.fresh("m");
      // Lanes can only exit in a condition; those are not in the loop any more.
      this.line(`{ let ${tested} = ${lanes};`);
      this.block(loop.condition, tested, undefined);
      this.line("}");
      const test = this.filter(
        (region) => region.operand(loop.test),
        loop.site,
        this.bankOfOperand(loop.test),
      );
      this.line(`goOn(W, ${lanes}, ${number}); ${test}(W, ${lanes});`);
    };
    const body = (): void => {
      const { inner } = this;
      this.block(loop.body, inner, number);
      if (isSpinning(loop)) this.line(`if (spin(W, ${inner}, ${loop.site})) yield;`);
    };
    this.turns(loop, m, number, condition, body);
  }

  private bankOfOperand(operand: Operand): "f" | "i" | "b" {
    return bankOf(operand.type.element);
  }

  private roles(statement: RolesNode, m: string): void {
    for (const { firstWarp, warps, body } of statement.roles) {
      this.line(`if (W.index >= ${firstWarp} && W.index < ${firstWarp + warps}) {`);
      this.block(body, m, undefined);
      this.line("}");
    }
  }

  /** A small region for a loop's bookkeeping. */
  private helper(prefix: string, write: (region: Region) => void, bank: "f" | "i" | "b"): string {
    const name = this.fresh(prefix);
    const region = new Region(this.emission, undefined);
    region.bank(bank);
    write(region);
    this.emission.functions.push(region.finish(name));
    return name;
  }

  /** A function that keeps the lanes for which a condition holds. */
  private filter(condition: (region: Region) => string, site: number, bank: "f" | "i" | "b"): string {
    const name = this.fresh("f");
    const region = new Region(this.emission, undefined);
    region.bank(bank);
    const text = condition(region);
    this.emission.functions.push(region.finish(name, { text, site }));
    return name;
  }
}

/** Whether a lane may leave the statement's surroundings by a jump: out of an enclosing loop, or for good. */
function jumpsOut(statement: Statement, insideLoop: boolean): boolean {
  switch (statement.kind) {
    case "exit":
      return true;
    case "break":
    case "continue":
      return !insideLoop;
    case "operation":
      return false;
    default: {
      const within = insideLoop || statement.kind === "loop" || statement.kind === "while";
      return innerBlocks(statement).some((block) =>
        block.statements.some((inner) => jumpsOut(inner, within)),
      );
    }
  }
}
