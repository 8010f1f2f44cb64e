/** A kernel of one's own: the sum of each row of a matrix. Run it with `npx tsx --conditions=tilewright-source`. */
import { open } from "tilewright";
import { block, f32, input, kernel, loop, output, thread, variable, when } from "tilewright/lang";

/** y[row] = Σ x[row, ·]; one block for each row. */
const rowSum = kernel("row_sum", {
  params: { x: input(f32, 2), y: output(f32) },
  block: 256,
  body({ x, y }) {
    const row = block.id.x;
    const sum = variable(f32, 0);
    loop({ from: thread.index, to: x.size(1), step: block.size }, (column) => {
      sum.value = sum.value.add(x.load(row, column));
    });
    const total = block.sum(sum.value);
    when(thread.index.eq(0), () => y.store(row, total));
  },
});

const [rows, columns] = [24, 1000];
const numbers = Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(i));

await using device = await open();
using x = device.array(f32, [rows, columns], numbers);
using y = device.empty(f32, [rows]);
await device.run(rowSum, { blocks: rows, args: { x, y } });
const sums = await y.read();

const errors = Array.from(sums, (sum, row) => {
  const exact = numbers.subarray(row * columns, (row + 1) * columns).reduce((a, b) => a + b, 0);
  return Math.abs(sum - exact);
});
console.log(`the first row adds up to ${sums[0]?.toFixed(4)}`);
console.log(
  `${rows} row sums; the largest error is ${Math.max(...errors) < 1e-4 ? "below 1e-4" : Math.max(...errors)}`,
);
