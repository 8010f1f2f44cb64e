/** Multiplies two matrices on the best device there is. Run it with `npx tsx --conditions=tilewright-source`. */
import { f32, open } from "tilewright";
import { gemm } from "tilewright/gemm";

await using device = await open();
using a = device.array(f32, [2, 3], [1, 2, 3, 4, 5, 6]);
using b = device.array(f32, [2, 3], [1, 0, 1, 0, 1, 0]);
using d = await gemm(a, b.transposed, { alpha: 10 });
console.log(d.shape, await d.read());
