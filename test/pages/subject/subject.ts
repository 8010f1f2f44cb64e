/** @file What a page makes of kernels: texts and numbers, for one that is bundled to be compared with one that is not. */
import { f16, f32, i8, open } from "tilewright";
import { dot4Operator, fmaOperator, geluTanh, planGemm } from "tilewright/gemm";
import { block, input, kernel, output, subgroup, thread, when } from "tilewright/lang";

/** A kernel of the page's own. */
const sums = kernel("sums", {
  params: { x: input(f32), y: output(f32) },
  block: 64,
  body({ x, y }) {
    const part = subgroup.sum(x.load(thread.index));
    const total = block.sum(x.load(thread.index));
    when(thread.index.eq(0), () => {
      y.store(0, total);
      y.store(1, part);
    });
  },
});

const values = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i * 37) % 19) - 9);

async function outcome(): Promise<{ readonly texts: string[]; readonly numbers: number[][] }> {
  await using device = await open("webgpu");
  const texts: string[] = [];
  const numbers: number[][] = [];

  const [x, y] = [device.array(f32, [64], values(64)), device.array(f32, [2])];
  const compiled = await device.compile(sums);
  device.launch(compiled, { blocks: 1, args: { x, y } });
  texts.push(compiled.text);
  numbers.push([...(await y.read())]);

  const lanes = { laneRows: 2, laneColumns: 2, rows: 2, columns: 2 };
  const params = { block: { m: 8, n: 8, k: 8 }, warps: { m: 2, n: 2 }, groupRows: 1 };
  for (const [type, operator] of [
    [f32, fmaOperator(lanes)],
    [f16, fmaOperator(lanes)],
    [i8, dot4Operator({ ...lanes, depth: 4 })],
  ] as const) {
    const a = device.array(type, [13, 21], values(13 * 21));
    const b = device.array(type, [21, 10], values(210));
    const epilogue = type === f32 ? [geluTanh] : [];
    using plan = await planGemm(a, b, { operator, params, epilogue });
    plan.run();
    texts.push(plan.compiled!.text);
    numbers.push(Array.from(await plan.d.read(), Number));
  }
  return { texts, numbers };
}

Object.assign(globalThis, { outcome: outcome() });
