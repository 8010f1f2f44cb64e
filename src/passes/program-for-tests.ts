/**
 * @file Random small kernels for property tests, grown from a tape of numbers so that shrinking the tape shrinks the
 * kernel. Every variable is assigned first, every loop ends, every position accessed is within 0 … 2^31.
 */
import { constant, KernelBuilder } from "../ir/builder-for-tests.ts";
import type {
  BufferParameter,
  IrValue,
  KernelIr,
  Lanes,
  Operand,
  RegisterVariable,
  SharedArray,
} from "../ir/nodes.ts";
import {
  bool,
  type ElementType,
  f16,
  f32,
  f64,
  i32,
  i64,
  index,
  type StorageType,
  u8,
  u32,
  u64,
} from "../types/types.ts";

const integers: readonly ElementType[] = [i32, u32, i64, u64];
const floats: readonly ElementType[] = [f32, f16, f64];
const numbers: readonly ElementType[] = [...integers, ...floats];

/** Constants where arithmetic has its corners. */
const corners: { readonly [name: string]: readonly (number | bigint | boolean)[] } = {
  i32: [0, 1, -1, 2, 3, 8, 31, 64, -7, 2147483647, -2147483648],
  u32: [0, 1, 2, 3, 8, 31, 64, 4294967295, 2147483648],
  i64: [0n, 1n, -1n, 8n, 3n, 9223372036854775807n, -9223372036854775808n],
  u64: [0n, 1n, 8n, 3n, 18446744073709551615n],
  index: [0, 1, 2, 4, 7, 1024],
  f32: [0, -0, 1, -1, 0.5, 2, 3.25, Infinity, NaN, 1e30],
  f16: [0, -0, 1, -1, 0.5, 65504, NaN],
  f64: [0, -0, 1, -1, 0.1, 1e300, NaN],
  bool: [true, false],
};

const storable: readonly StorageType[] = [f32, f16, f64, i32, u32, i64, u64];

const scalarTypes: readonly ElementType[] = [...numbers, index];

/** Values for the kernels' parameters; `choice` picks a corner of each type. */
export function argumentsFor(kernel: KernelIr, choice: number): readonly (number | bigint | boolean)[] {
  return kernel.parameters.map((parameter) => {
    if (parameter.kind !== "scalar") return 0;
    const values = corners[parameter.element.name]!;
    return values[choice % values.length]!;
  });
}

/** The kernel that a tape describes. */
export function growKernel(tape: readonly number[]): KernelIr {
  return new Grower(tape).kernel();
}

class Grower {
  private readonly b = new KernelBuilder();
  private at = 0;
  private readonly scopes: IrValue[][] = [[]];
  private readonly variables: RegisterVariable[];
  private readonly inputs: BufferParameter[];
  private readonly outputs: BufferParameter[];
  private readonly tile: SharedArray;
  private depth = 0;
  private loops = 0;
  private whiles = 0;

  constructor(private readonly tape: readonly number[]) {
    const { b } = this;
    this.inputs = [b.buffer("in_f32", f32, "read"), b.buffer("in_u8", u8, "read")];
    this.outputs = storable.map((type) => b.buffer(`out_${type.name}`, type));
    this.tile = b.shared("tile", f32, 1 << 12);
    const scalars = scalarTypes.map((type) => b.scalarParameter(`p_${type.name}`, type));
    this.variables = [i32, u32, f32, bool, index].map((type) => b.variable(`v_${type.name}`, type));
    this.variables.push(b.variable("w_i32", i32), b.variable("w_f32", f32));
    this.variables.push(b.variable("pair", f32, 1, 2), b.variable("several", i32, 3));
    this.make(b.builtin("threadIndexX"));
    this.make(b.builtin("blockIndexX"));
    for (const scalar of scalars) this.make(b.parameter(scalar));
    for (const variable of this.variables) {
      for (let element = 0; element < variable.count; element++) {
        b.write(
          variable,
          constant(variable.type.element, corners[variable.type.element.name]![1]!, variable.type.lanes),
          element,
        );
      }
    }
  }

  kernel(): KernelIr {
    while (this.at < this.tape.length) this.statement();
    this.showMade();
    for (const variable of this.variables) this.show(this.b.read(variable));
    return this.b.build();
  }

  private next(below: number): number {
    const number = this.tape[this.at++] ?? 0;
    return number % below;
  }

  private choose<T>(items: readonly T[]): T {
    return items[this.next(items.length)]!;
  }

  private make(value: IrValue): IrValue {
    this.scopes.at(-1)!.push(value);
    return value;
  }

  private inner(body: () => void): () => void {
    return () => {
      this.scopes.push([]);
      this.depth++;
      body();
      this.showMade();
      this.depth--;
      this.scopes.pop();
    };
  }

  private statements(): void {
    for (let count = 1 + this.next(4); count > 0; count--) this.statement();
  }

  private statement(): void {
    const { b } = this;
    const kinds = this.depth < 3 ? 15 : 11;
    switch (this.next(kinds)) {
      case 0:
      case 1:
      case 2:
      case 3:
        this.make(this.arithmetic());
        return;
      case 4:
        this.make(b.read(...this.register()));
        return;
      case 5: {
        const [variable, element] = this.register();
        b.write(variable, this.operand(variable.type.element, variable.type.lanes), element);
        return;
      }
      case 6: {
        const array = this.choose([...this.inputs, this.tile]);
        this.make(b.load(array, this.position()));
        return;
      }
      case 7:
        b.store(this.outputs[0]!, this.position(), this.operand(f32));
        return;
      case 8:
        this.loops > 0 && this.next(3) === 0 ? this.jump() : this.make(this.truth());
        return;
      case 9:
        this.make(this.vector());
        return;
      case 10:
        b.if(
          this.operand(bool),
          () => this.assignments(),
          this.next(2) === 0 ? undefined : () => this.assignments(),
        );
        return;
      case 11:
      case 12:
        b.if(
          this.operand(bool),
          this.inner(() => this.statements()),
          this.next(2) === 0 ? undefined : this.inner(() => this.statements()),
        );
        return;
      case 13:
        this.loop();
        return;
      default:
        this.while();
    }
  }

  /** A branch small enough to become selections: variables written, and read before or after that. */
  private assignments(): void {
    const { b } = this;
    for (let count = 1 + this.next(3); count > 0; count--) {
      const type = this.choose([i32, f32]);
      const [one, other] = this.variables.filter(
        (variable) => variable.type.element === type && variable.type.lanes === 1,
      );
      const [target, source] = this.next(2) === 0 ? [one!, other!] : [other!, one!];
      const value =
        this.next(2) === 0 ? this.operand(type) : b.calculate("add", b.read(source), this.operand(type));
      b.write(target, value);
    }
  }

  private register(): [RegisterVariable, number] {
    const variable = this.choose(this.variables);
    return [variable, this.next(variable.count)];
  }

  private jump(): void {
    this.b.if(this.operand(bool), () => this.b.jump(this.choose(["break", "continue"])));
  }

  private loop(): void {
    const type = this.choose([i32, u32, index]);
    const from = constant(type, this.next(4));
    const to = constant(type, this.next(9));
    this.b.loop(from, to, constant(type, 1 + this.next(3)), (counter) => {
      this.loops++;
      this.inner(() => {
        this.make(counter);
        this.statements();
      })();
      this.loops--;
    });
  }

  /** Counts in its condition, so that no jump keeps it from ending. */
  private while(): void {
    const { b } = this;
    const counter = b.variable(`turn${this.whiles++}`, i32);
    b.write(counter, constant(i32, 0));
    const turns = this.next(4);
    b.while(
      () => {
        const turn = b.read(counter);
        b.write(counter, b.calculate("add", turn, constant(i32, 1)));
        return b.compare("less", turn, constant(i32, turns));
      },
      () => {
        this.loops++;
        this.inner(() => this.statements())();
        this.loops--;
      },
    );
  }

  /** An operand of a type: one that is visible, or a constant. */
  private operand(element: ElementType, lanes: Lanes = 1): Operand {
    const fitting = this.scopes.flat().filter(({ type }) => type.element === element && type.lanes === lanes);
    const pick = this.next(fitting.length + 2);
    return (
      fitting[fitting.length - 1 - pick] ??
      constant(element, this.choose(corners[element.name] ?? [0]), lanes)
    );
  }

  /** A second operand: rather often a constant. */
  private second(type: ElementType): Operand {
    return this.next(2) === 0 ? constant(type, this.choose(corners[type.name]!)) : this.operand(type);
  }

  private arithmetic(): IrValue {
    const { b } = this;
    const type = this.choose([i32, i32, u32, index, ...numbers]);
    const a = this.operand(type);
    switch (this.next(7)) {
      case 0:
      case 1:
        return b.calculate(this.choose(["add", "sub", "mul", "min", "max"]), a, this.second(type));
      case 2:
        if (type === index) return b.calculate("floorMod", a, constant(index, 1 + this.next(8)));
        return type.class === "float"
          ? b.calculate("fma", a, this.operand(type), this.operand(type))
          : b.calculate(
              this.choose(["div", "rem", "floorDiv", "floorMod", "and", "or", "xor"]),
              a,
              this.second(type),
            );
      case 3:
        if (type.class === "float" || type === index) return b.calculate(this.choose(["neg", "abs"]), a);
        return b.op(
          this.choose(["shiftLeft", "shiftRight"]),
          a.type,
          [a, this.operand(this.choose([i32, u32]))],
          {},
        );
      case 4:
        return b.convert(a, this.choose(numbers));
      case 5:
        return b.select(this.operand(bool), a, this.operand(type));
      default: {
        const [from, to] = this.choose([
          [i32, u32],
          [u32, i32],
          [f32, u32],
          [i32, f32],
          [i64, f64],
        ] as const);
        // JavaScript keeps no payload of a NaN, so the bits stay below the exponent of one.
        const bits = this.operand(from);
        const low = constant(from, from === i64 ? (1n << 62n) - 1n : 0x3fffffff);
        const held = to.class === "float" ? b.calculate("and", bits, low) : bits;
        return b.op("bitcast", { element: to, lanes: 1 }, [held], {});
      }
    }
  }

  private truth(): IrValue {
    const { b } = this;
    if (this.next(3) === 0) {
      const a = this.operand(bool);
      return this.next(2) === 0
        ? b.calculate("not", a)
        : b.calculate(this.choose(["and", "or", "xor"]), a, this.operand(bool));
    }
    const type = this.choose([i32, u32, index, f32]);
    const name = this.choose(["equal", "notEqual", "less", "lessEqual", "greater", "greaterEqual"] as const);
    return b.compare(name, this.operand(type), this.operand(type));
  }

  private vector(): IrValue {
    const { b } = this;
    const pair = { element: f32, lanes: 2 } as const;
    switch (this.next(3)) {
      case 0:
        return b.op("compose", pair, [this.operand(f32), this.operand(f32)], {});
      case 1:
        return b.op("extract", { element: f32, lanes: 1 }, [this.operand(f32, 2)], { lane: this.next(2) });
      default:
        return b.op(this.choose(["add", "mul"]), pair, [this.operand(f32, 2), this.operand(f32, 2)], {});
    }
  }

  /** Small things summed up, scaled and moved far enough up to be a valid position. */
  private position(): Operand {
    const { b } = this;
    const type = this.choose([i32, i32, index, u32]);
    const up = constant(type, 1 << 20);
    let sum: Operand = this.small(type);
    for (let turns = this.next(4); turns > 0; turns--) {
      const other = this.next(3) === 0 ? this.small(type) : constant(type, this.next(9));
      switch (this.next(4)) {
        case 0:
          sum = b.calculate("sub", sum, other);
          break;
        case 1:
          sum = b.calculate("mul", sum, constant(type, 1 + this.next(5)));
          break;
        default:
          sum = b.calculate("add", sum, other);
      }
    }
    const position = b.calculate("add", sum, up);
    return type !== index && this.next(4) === 0 ? b.convert(position, index) : position;
  }

  /** Something between 0 and 63 of an integer type. */
  private small(type: ElementType): IrValue {
    const { b } = this;
    const word = this.operand(i32);
    const masked = b.op("and", { element: i32, lanes: 1 }, [word, constant(i32, 31)], {});
    return type === i32 ? masked : b.convert(masked, type);
  }

  /** Stores what the innermost block has made, so that no wrong value goes unseen. */
  private showMade(): void {
    for (const value of this.scopes.at(-1)!) this.show(value);
  }

  /** Stores a value where the type has an output. */
  private show(value: Operand): void {
    const { b } = this;
    const { element, lanes } = value.type;
    if (lanes === 2) {
      for (const lane of [0, 1]) this.show(b.op("extract", { element, lanes: 1 }, [value], { lane }));
      return;
    }
    const output = this.outputs.find((array) => array.element === element);
    if (output !== undefined) b.store(output, constant(i32, this.shown++), value);
    else this.show(b.convert(value, element === index ? i64 : i32));
  }

  private shown = 0;
}
