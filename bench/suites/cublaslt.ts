/** @file Dense products by cuBLASLt alone: the marks that products from here are measured against. */
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { byteSize, type StorageType, types } from "../../src/types/types.ts";
import type { WorkItem } from "../harness.ts";
import type { LimitKind } from "../limits.ts";
import { CublasLt, type MatmulOptions } from "../peers/cublaslt.ts";
import { randomBuffer } from "../random.ts";
import type { Suite } from "../suite.ts";

interface Product {
  readonly name: string;
  readonly operand: "f16" | "bf16" | "f32" | "f64" | "i8" | "e4m3";
  readonly result: "f16" | "bf16" | "f32" | "f64" | "i32";
  readonly compute: MatmulOptions["compute"];
  readonly limit: LimitKind;
  /** "NT": B is stored as its transpose. */
  readonly majors: readonly ("NN" | "NT" | "TN" | "TT")[];
}

const every = ["NN", "NT", "TN", "TT"] as const;

const products: readonly Product[] = [
  { name: "f16", operand: "f16", result: "f16", compute: "f32", limit: "f16", majors: every },
  { name: "f16 to f32", operand: "f16", result: "f32", compute: "f32", limit: "f16", majors: every },
  { name: "f16 summed in f16", operand: "f16", result: "f16", compute: "f16", limit: "f16", majors: ["NT"] },
  { name: "bf16", operand: "bf16", result: "bf16", compute: "f32", limit: "bf16", majors: ["NN", "NT"] },
  { name: "tf32", operand: "f32", result: "f32", compute: "tf32", limit: "tf32", majors: ["NN", "NT"] },
  { name: "f32", operand: "f32", result: "f32", compute: "f32", limit: "f32", majors: ["NN", "NT"] },
  { name: "f64", operand: "f64", result: "f64", compute: "f64", limit: "f64 tensor", majors: ["NN", "NT"] },
  { name: "i8 to i32", operand: "i8", result: "i32", compute: "i32", limit: "int8", majors: ["NT"] },
  { name: "e4m3 to bf16", operand: "e4m3", result: "bf16", compute: "f32", limit: "fp8", majors: ["NT"] },
];

const sizes = [512, 1024, 2048, 4096, 8192, 16384] as const;

function productItem(
  backend: CudaBackend,
  product: Product,
  size: number,
  majors: string,
  epilogue: MatmulOptions["epilogue"] = "none",
): WorkItem {
  const suffix = epilogue === "none" ? "" : ` + ${epilogue}`;
  return {
    id: `${product.name} ${size} x ${size} x ${size} ${majors}${suffix}`,
    operations: 2 * size ** 3,
    limit: product.limit,
    prepare: async () => {
      const operand: StorageType = types[product.operand];
      const result: StorageType = types[product.result];
      const count = size * size;
      const a = randomBuffer(backend, operand, count, 1);
      const b = randomBuffer(backend, operand, count, 2);
      const d = backend.allocate(count * byteSize(result));
      const bias = randomBuffer(backend, result, size, 3);
      const library = new CublasLt(backend);
      const plan = await library.matmul({
        m: size,
        n: size,
        k: size,
        a: { type: product.operand, buffer: a, leading: size, transposed: majors[0] === "T" },
        b: { type: product.operand, buffer: b, leading: size, transposed: majors[1] === "T" },
        d: { type: product.result, buffer: d, leading: size },
        compute: product.compute,
        epilogue,
        bias,
      });
      return {
        contenders: [
          {
            name: "cuBLASLt",
            role: "peer",
            note: `${library.version}, ${plan.note}`,
            enqueue: () => plan.enqueue(),
          },
        ],
        dispose: () => {
          plan.dispose();
          library.dispose();
          for (const buffer of [a, b, d, bias]) backend.free(buffer);
        },
      };
    },
  };
}

export const cublasLtSuite: Suite = {
  name: "cublaslt",
  items: (backend) => [
    ...sizes.flatMap((size) =>
      products.flatMap((product) =>
        product.majors.map((majors) => productItem(backend, product, size, majors)),
      ),
    ),
    ...[4096, 8192].flatMap((size) =>
      (["bias", "relu", "bias relu", "gelu", "bias gelu"] as const).map((epilogue) =>
        productItem(backend, products[0]!, size, "NN", epilogue),
      ),
    ),
  ],
};
