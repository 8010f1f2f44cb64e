import { afterEach, describe, expect, it } from "vitest";
import { ArgumentError, TraceError } from "../errors.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { bool, type ElementType, f16, f32, i32, index } from "../types/types.ts";
import { type Bench, expectTraceError, traced } from "./author-lines-for-tests.ts";
import { block } from "./block.ts";
import { subgroup } from "./collective.ts";
import { breakLoop, loop, loopWhile, type Otherwise, when } from "./control.ts";
import { kernel } from "./kernel.ts";
import { select } from "./math.ts";
import { shared } from "./memory.ts";
import { input, output } from "./parameters.ts";
import { setPositions } from "./position.ts";
import { roles } from "./roles.ts";
import { thread } from "./thread.ts";
import { constant, type Value } from "./value.ts";
import { variable } from "./variable.ts";
import { vector } from "./vector.ts";

/** A body that must not trace. */
function refused(body: (bench: Bench) => void, message: string | RegExp, ...marks: readonly string[]): void {
  expectTraceError(() => traced(body), message, ...marks);
}

/** A value as JavaScript without types sees it. */
// biome-ignore lint/suspicious/noExplicitAny: that is the point
type Untyped = any;

describe("JavaScript's own operators", () => {
  it("an `if` that tests a comparison is an error at the comparison", () => {
    refused(
      ({ x }) => {
        if (x.load(0).lt(1) as Untyped) x.store(0, 1); // tested
      },
      "nothing uses this comparison; a JavaScript `if`",
      "// tested",
    );
  });

  it("so are `?:`, `&&` and `!`", () => {
    refused(
      ({ x }) => {
        x.store(0, (x.load(0).lt(1) as Untyped) ? 1 : 2); // chosen
      },
      "nothing uses this comparison",
      "// chosen",
    );
    refused(
      ({ x }) => {
        const both = (x.load(0).lt(1) as Untyped) && x.load(1).lt(1); // first of two
        when(both, () => x.store(0, 1));
      },
      "nothing uses this comparison",
      "// first of two",
    );
    refused(
      ({ x }) => {
        if (!(x.load(0).lt(1) as Untyped)) x.store(0, 1); // negated
      },
      "nothing uses this comparison",
      "// negated",
    );
  });

  it("a comparison that is used does no harm", () => {
    traced(({ x }) => {
      const below = x.load(0).lt(1);
      when(below, () => x.store(0, 1));
      x.store(1, select(x.load(1).gt(0), x.load(1), 0));
      const flag = variable(bool, false);
      flag.value = x.load(2).eq(0);
      loopWhile(
        () => x.load(3).gt(0).and(flag.value),
        () => x.store(3, 0),
      );
    });
  });

  it.each([
    ["+", (v: Untyped) => v + 1],
    ["-", (v: Untyped) => 1 - v],
    ["*", (v: Untyped) => v * v],
    ["<", (v: Untyped) => v < 3],
    ["a template", (v: Untyped) => `${v}`],
    ["an index", (v: Untyped) => [1, 2, 3][v]],
    ["unary +", (v: Untyped) => +v],
    ["JSON", (v: Untyped) => JSON.stringify({ v })],
  ])("%s on a value throws", (_, compute) => {
    refused(
      ({ x }) => {
        const v = x.load(0); // made
        compute(v);
      },
      "known only on the device, and JavaScript cannot compute with it: use .add",
      "(v: Untyped) =>",
      "// made",
    );
  });

  it("so do they on a vector", () => {
    refused(
      ({ x }) => {
        const v = x.loadVectorAt(2, 0); // made
        void ((v as Untyped) + 1); // used
      },
      "kernel vector is known only on the device",
      "// used",
      "// made",
    );
  });

  it("awaiting a value throws", async () => {
    let error: unknown;
    const body = async ({ x }: Bench): Promise<void> => {
      const v = x.load(0);
      await (v as Untyped).then;
    };
    try {
      traced((bench) => {
        body(bench).catch((thrown: unknown) => {
          error = thrown;
        });
      });
    } finally {
      await Promise.resolve();
    }
    expect(error).toBeInstanceOf(TraceError);
    expect((error as TraceError).message).toContain(
      "cannot be awaited; read arrays with `await array.read()` on the host",
    );
  });

  it("asynchronous bodies are refused", () => {
    const asynchronous = kernel("late", { params: {}, block: 32, body: async () => {} }); // defined
    expectTraceError(
      () => asynchronous.trace(nvidiaTarget("sm_80")),
      "kernel late: the kernel body is asynchronous; kernel code is traced and cannot await",
      "// defined",
    );
    refused(
      ({ x }) => {
        when(x.load(0).gt(0), async () => x.store(0, 1)); // here
      },
      "the body of a when() body is asynchronous",
      "// here",
    );
  });
});

describe("where a value may be used", () => {
  it("not outside its branch: both lines are named", () => {
    refused(
      ({ x }) => {
        let escaped: Value<typeof f32> | undefined;
        when(x.load(0).gt(0), () => {
          escaped = x.load(1).add(1); // made
        });
        x.store(0, escaped!); // used
      },
      "a value made inside a when() body is used outside it; carry it out in a variable()",
      "// used",
      "// made",
    );
  });

  it("not in the other branch", () => {
    refused(
      ({ x }) => {
        let escaped: Value<typeof f32> | undefined;
        when(x.load(0).gt(0), () => {
          escaped = x.load(1); // made
        }).otherwise(() => {
          x.store(0, escaped!); // used
        });
      },
      "a value made inside a when() body is used outside it",
      "// used",
      "// made",
    );
  });

  it("not outside its loop, the counter included", () => {
    refused(
      ({ n }) => {
        let escaped: Value<typeof i32> | undefined;
        loop(4, (i) => {
          escaped = i;
        });
        n.store(0, escaped!); // used
      },
      "a value made inside a loop() body is used outside it",
      "// used",
      "loop(4, (i) =>",
    );
  });

  it("not outside its role", () => {
    const facts = nvidiaTarget("sm_90a");
    let escaped: Value<typeof i32> | undefined;
    expectTraceError(
      () =>
        traced(({ n }) => {
          roles([
            {
              warps: 1,
              body: () => {
                escaped = n.load(0);
              },
            },
            { warps: 1, body: () => n.store(0, escaped!) },
          ]);
        }, facts),
      "a value made inside the role role0 is used outside it",
      "n.store(0, escaped!)",
      "escaped = n.load(0)",
    );
  });

  it("in blocks nested in its own, and out of a loop in a variable", () => {
    traced(({ x }) => {
      const a = x.load(0);
      const sum = variable(f32, 0);
      loop(4, () => {
        when(a.gt(0), () => {
          sum.value = sum.value.add(a);
        });
      });
      x.store(0, sum.value);
    });
  });

  it("not in another kernel", () => {
    let foreign: Value<typeof f32> | undefined;
    traced(({ x }) => {
      foreign = x.load(0); // made
    });
    refused(
      ({ x }) => x.store(0, foreign!),
      /* used */ "used outside the kernel it was traced in",
      "foreign!",
      "// made",
    );
  });

  it("not in a kernel traced inside its own", () => {
    refused(
      ({ x }) => {
        const outer = x.load(0); // made
        traced((inner) => inner.x.store(0, outer)); // used
      },
      "a value of another kernel is used here",
      "// used",
      "// made",
    );
  });

  it("not after the trace", () => {
    let late: Value<typeof f32> | undefined;
    traced(({ x }) => {
      late = x.load(0);
    });
    expect(() => late!.add(1)).toThrow("this belongs inside a kernel's body");
    expect(() => thread.index).toThrow("this belongs inside a kernel's body");
    expect(() => when(true, () => thread.index)).toThrow(TraceError);
  });
});

describe("types", () => {
  it("a number that the type cannot hold is an error at its line", () => {
    refused(
      ({ n }) => {
        n.store(0, 2 ** 31); // too large
      },
      "i32 cannot hold 2147483648",
      "// too large",
    );
    refused(
      ({ n }) => {
        n.store(0, n.load(0).add(0.5)); // no integer
      },
      "i32 cannot hold 0.5",
      "// no integer",
    );
    refused(
      ({ x }) => {
        x.store(0, x.load(0).mul(1e39)); // no f32
      },
      "f32 cannot hold 1e+39",
      "// no f32",
    );
    refused(
      () => {
        variable(f16, 1e6); // no f16
      },
      "f16 cannot hold 1000000",
      "// no f16",
    );
    refused(
      () => {
        constant(i32, Number.NaN); // no number
      },
      "i32 cannot hold NaN",
      "// no number",
    );
  });

  it("a wrong type inside a helper two calls deep names its line and both types", () => {
    const inner = (a: Value<typeof f32>, b: Value<typeof f32>): Value<typeof f32> => a.add(b); // helper
    const outer = (a: Value<typeof f32>, b: Value<typeof f32>): Value<typeof f32> => inner(a, b).mul(2);
    refused(
      ({ x }) => {
        const half = x.load(0).to(f16); // converted
        x.store(0, outer(x.load(1), half as Untyped));
      },
      "f32 is wanted here and f16 is given; convert with .to(f32)",
      "// helper",
      "// converted",
    );
  });

  it("operators that a type does not have say what to do", () => {
    refused(
      ({ x }) => void (x.load(0) as Untyped).shiftLeft(1),
      "f32 has no shiftLeft; convert first",
      "shiftLeft(1)",
    );
    refused(({ x }) => void (x.load(0) as Untyped).and(1), "f32 has no and", "and(1)");
    refused(
      ({ x }) => void (x.load(0).lt(1) as Untyped).add(1),
      "bool has no add; select() turns a condition into a number",
      "add(1)",
    );
    refused(
      ({ x }) => void (x.load(0).lt(1) as Untyped).lt(x.load(0).lt(2)),
      "conditions have no order",
      "lt(x.load(0).lt(2))",
    );
    refused(
      ({ x }) => void x.load(0).bitcast(f16),
      "bitcast from f32 (32 bits) to f16 (16 bits): widths must agree",
      "bitcast(f16)",
    );
  });

  it("things that are no values are refused", () => {
    refused(
      ({ x }) => void x.load(0).add("1" as Untyped),
      "expected a value of type f32 or a number, got string",
      '.add("1"',
    );
    refused(({ x }) => void x.load(0).add(undefined as Untyped), "got undefined", ".add(undefined");
    refused(({ x }) => void x.load(0).add(x as Untyped), "got GlobalArray", ".add(x as");
    refused(
      ({ x }) => void when(x.load(0) as Untyped, () => {}),
      "a condition (bool) is wanted here and f32 is given",
      "when(x.load(0)",
    );
    refused(() => void select(true, 1 as Untyped, 2), "select() of two numbers has no type", "select(true");
  });

  it("positions are integers", () => {
    refused(
      ({ x }) => void x.load(x.load(0) as Untyped),
      "an element position is i32, u32 or index, not f32",
      "x.load(x.load(0)",
    );
    refused(({ x }) => void x.load(0.5), "element position 0.5 is not an integer", "x.load(0.5)");
    refused(({ x }) => void x.load(), "x has rank 1; 0 coordinates were given", "x.load()");
    refused(({ x }) => void x.load(0, 0), "x has rank 1; 2 coordinates were given", "x.load(0, 0)");
    refused(({ x }) => void x.size(1), "x has rank 1; there is no dimension 1", "x.size(1)");
  });

  it("inputs are not written and outputs not read", () => {
    const wrong = kernel("wrong", {
      params: { a: input(f32), b: output(f32) },
      block: 32,
      body: ({ a }) => a.store(0, 1), // writes
    });
    expectTraceError(
      () => wrong.trace(nvidiaTarget("sm_80")),
      "a is an input; declare it with output() or inout() to write it",
      "// writes",
    );
    const reads = kernel("reads", {
      params: { b: output(f32) },
      block: 32,
      body: ({ b }) => b.store(0, b.load(0)), // reads
    });
    expectTraceError(
      () => reads.trace(nvidiaTarget("sm_80")),
      "b is an output; declare it with inout() to read it",
      "// reads",
    );
  });
});

describe("vectors", () => {
  it("have 2, 4, 8 or 16 lanes in at most 16 bytes, all of one type", () => {
    refused(
      ({ x }) => void vector(x.load(0), x.load(1), x.load(2)),
      "a vector has 2, 4, 8 or 16 lanes, not 3",
      "vector(x.load(0)",
    );
    refused(() => void vector(), "not 0", "vector()");
    refused(
      ({ x }) => void x.loadVectorAt(8, 0),
      "8 x f32 is 32 bytes; one access moves at most 16",
      "loadVectorAt(8",
    );
    refused(
      ({ x, n }) => void vector(x.load(0), n.load(0) as Untyped),
      "f32 is wanted here and i32 is given",
      "vector(x.load(0)",
      "vector(x.load(0)",
    );
    refused(
      ({ x }) => void x.loadVectorAt(2, 0).at(2),
      "lane 2 of a vector of 2; lanes are 0 to 1",
      ".at(2)",
    );
    refused(
      ({ x }) => {
        const wide = x.loadVectorAt(4, 0); // four
        void x.loadVectorAt(2, 0).add(wide as Untyped); // two
      },
      "2 x f32 and 4 x f32 do not go together",
      "// two",
      "// four",
    );
  });
});

describe("control flow", () => {
  it("otherwise() follows its when() directly, once", () => {
    refused(
      ({ x }) => {
        const branch = when(x.load(0).gt(0), () => {});
        x.store(0, 1);
        branch.otherwise(() => {}); // late
      },
      "otherwise() must follow its when() directly, before any other step",
      "// late",
    );
    refused(
      ({ x }) => {
        const branch = when(x.load(0).gt(0), () => {});
        branch.otherwise(() => {});
        branch.otherwise(() => {}); // twice
      },
      "otherwise() was already given for this when()",
      "// twice",
    );
    refused(
      ({ x }) => {
        let branch: Otherwise | undefined;
        when(x.load(0).gt(0), () => {
          branch = when(x.load(1).gt(0), () => {});
        });
        branch!.otherwise(() => {}); // elsewhere
      },
      "otherwise() must follow its when() directly",
      "// elsewhere",
    );
  });

  it("break and continue stand in a loop", () => {
    refused(() => breakLoop(), "breakLoop() outside a loop", "breakLoop()");
    traced(() => loop(3, (i) => void when(i.gt(1), () => breakLoop())));
  });

  it("loops count upwards in integers", () => {
    refused(() => loop({ to: 4, step: 0 }, () => {}), "a loop's step must be at least 1, not 0", "step: 0");
    refused(() => loop({ from: 4, to: 0, step: -1 }, () => {}), "to count down, subtract", "step: -1");
    refused(
      ({ x }) => loop(x.load(0) as Untyped, () => {}),
      "a loop counts in i32, u32 or index, not f32",
      "loop(x.load(0)",
    );
    refused(
      ({ n }) => loop({ from: n.load(0), to: constant(index, 9) as Untyped }, () => {}),
      "index is wanted here and i32 is given",
      "from: n.load(0)",
      "from: n.load(0)",
    );
  });
});

describe("roles", () => {
  const facts = nvidiaTarget("sm_90a");
  const refusedRoles = (body: () => void, message: string, mark: string, threads = 256): void =>
    expectTraceError(() => traced(body, facts, { block: threads }), message, mark);

  it("stand at the top level, once, and cover the block", () => {
    const halves = [
      { warpgroups: 1, body() {} },
      { warpgroups: 1, body() {} },
    ];
    refusedRoles(
      () => void when(thread.index.gt(3), () => roles(halves)),
      "roles() stands at the top level of a kernel",
      "roles(halves)",
    );
    refusedRoles(() => loop(3, () => roles(halves)), "roles() stands at the top level", "roles(halves)");
    refusedRoles(
      () => {
        roles(halves);
        roles(halves); // again
      },
      "roles() splits a block once",
      "// again",
    );
    refusedRoles(
      () => roles(halves),
      "the roles take 8 subgroups of 32 threads and the block has 384 threads",
      "roles(halves)",
      384,
    );
  });

  it("hold registers in steps of 8", () => {
    const odd = [{ warpgroups: 2, registers: 100, body() {} }];
    refusedRoles(
      () => roles(odd),
      "a role's registers are a multiple of 8 from 24 to 256, not 100",
      "roles(odd)",
    );
  });

  it("have no block-wide barriers", () => {
    expect(() =>
      traced(
        () =>
          roles([
            { warps: 1, body: () => block.barrier() },
            { warps: 1, body() {} },
          ]),
        facts,
      ),
    ).toThrow(/barrier/);
  });
});

describe("collectives and shared memory", () => {
  it("shuffle within powers of two", () => {
    refused(
      ({ x }) => void subgroup.shuffle(x.load(0), 0, 3),
      "shuffle width 3: a power of two up to the subgroup's 32",
      "shuffle(x.load(0)",
    );
    refused(({ x }) => void subgroup.shuffle(x.load(0), 0, 64), "shuffle width 64", "shuffle(x.load(0)");
  });

  it("shapes are known while tracing", () => {
    refused(
      () => void shared(f32, 0),
      "a shared array's shape is made of positive integers known while tracing, not [0]",
      "shared(f32, 0)",
    );
    refused(() => void shared(f32, [4, 2.5]), "not [4, 2.5]", "shared(f32");
    refused(() => void shared(bool as Untyped, 4), "bool has no form in memory", "shared(bool");
    expect(() => traced(() => void shared(f32, 2 ** 20))).toThrow(
      /4194304 bytes of shared memory; .* has \d+ a block/,
    );
  });

  it("a block reduction takes whole subgroups", () => {
    expect(() => traced(({ x }) => x.store(0, block.sum(x.load(0))), undefined, { block: 48 })).toThrow(
      "a block reduction needs whole subgroups: 48 threads are no multiple of 32",
    );
  });
});

describe("names and sizes", () => {
  it.each(["", "1st", "row sum", "a-b", "x;", "ä", "_x", "a".repeat(64)])("%j is no name", (name) => {
    const body = (): void => {};
    expect(() => kernel(name, { params: {}, block: 32, body })).toThrow(ArgumentError);
    expect(() => kernel("good", { params: { [name]: input(f32) }, block: 32, body })).toThrow(
      /is no name for a kernel or parameter/,
    );
  });

  it.each([0, -1, 1.5, Number.NaN, [], [1, 2, 3, 4], [32, 0]])("a block of %j is refused", (size) => {
    expect(() => kernel("k", { params: {}, block: size, body() {} }).trace(nvidiaTarget("sm_80"))).toThrow(
      ArgumentError,
    );
  });

  it("a block that the target cannot hold is refused", () => {
    expect(() =>
      kernel("k", { params: {}, block: [64, 32], body() {} }).trace(nvidiaTarget("sm_80")),
    ).toThrow("a block of 2048 threads; sm_80 takes at most 1024");
  });

  it("ranks are checked", () => {
    expect(() => input(f32, 7)).toThrow("rank is 0 to 6, not 7");
    expect(() => input({ ...f32, name: "q7" } as unknown as ElementType as typeof f32)).not.toThrow();
  });
});

describe("positions", () => {
  afterEach(() => setPositions(true));

  it("switched off, errors say how to get them", () => {
    setPositions(false);
    expect(() => traced(({ n }) => n.store(0, 0.5))).toThrow(
      "i32 cannot hold 0.5\n    at (position unknown; set TILEWRIGHT_POSITIONS=1)",
    );
  });

  it("are those of the author, not of the language's own helpers", () => {
    const { positions } = traced(({ x }) => {
      x.store(0, block.sum(x.load(0))); // the only line
    });
    expect(new Set(positions.map((position) => position?.line))).toHaveLength(1);
  });
});
