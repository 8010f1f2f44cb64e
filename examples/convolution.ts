/**
 * A convolution with what follows it in a network: 3 x 3 filters over images, a bias for each output channel and ReLU, in one
 * kernel. Then the edges of a picture by Sobel's filters.
 */
import { f32, open } from "tilewright";
import { conv2d, relu } from "tilewright/gemm";

await using device = await open();

const [batch, height, width, channels, outputs] = [2, 12, 10, 8, 16] as const;
const wave = (i: number): number => Math.sin(0.7 * i);
const images = device.array(
  f32,
  [batch, height, width, channels],
  Float32Array.from({ length: batch * height * width * channels }, (_, i) => wave(i)),
);
const filters = device.array(
  f32,
  [outputs, 3, 3, channels],
  Float32Array.from({ length: outputs * 9 * channels }, (_, i) => wave(3 * i) / 9),
);
const bias = device.array(
  f32,
  [outputs],
  Float32Array.from({ length: outputs }, (_, i) => 0.1 * i),
);
const features = await conv2d(images, filters, { padding: "same", bias, epilogue: [relu] });
console.log("features", features.shape.join(" x "));

// A bright square on a dark ground: one image of one channel, two filters.
const picture = device.array(
  f32,
  [1, 1, 6, 6],
  Float32Array.from({ length: 36 }, (_, i) => (Math.floor(i / 6) > 1 && i % 6 > 1 ? 1 : 0)),
);
const sobel = device.array(
  f32,
  [2, 1, 3, 3],
  Float32Array.of(-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1),
);
const edges = await conv2d(picture, sobel, { layout: "NCHW" });
const values = await edges.read();
console.log("across  ", [...values.slice(0, 4)].join(" "));
console.log("down    ", [...values.slice(16, 20)].join(" "));
