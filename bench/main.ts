/**
 * @file `npm run bench -- SUITE…`: runs suites on the CUDA device and keeps the results. The suites called simulator and
 * webgpu need no CUDA.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CudaBackend, createCudaBackend } from "../src/runtime/cuda/index.ts";
import { parseShard, runSuite, type Selection, select } from "./suite.ts";
import { suites } from "./suites/index.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    device: { type: "string", default: "0" },
    out: { type: "string", default: fileURLToPath(new URL("./results", import.meta.url)) },
    only: { type: "string" },
    shard: { type: "string" },
    seconds: { type: "string" },
    again: { type: "boolean" },
    list: { type: "boolean" },
    sizes: { type: "string" },
    rounds: { type: "string" },
  },
});

const names = [...Object.keys(suites), "simulator", "webgpu"];
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`There is no suite ${unknown.join(", ")}; there are ${names.join(", ")}.`);
  process.exit(2);
}

const wanted = positionals.length > 0 ? positionals : names;
const only = values.only === undefined ? undefined : new RegExp(values.only);
const sizes = values.sizes?.split(",").map(Number);
if (sizes?.some((size) => !Number.isInteger(size) || size < 1) === true) {
  console.error(`--sizes takes whole numbers, such as 1024,2048; "${values.sizes}" was given.`);
  process.exit(2);
}
if (wanted.includes("simulator")) {
  const { benchSimulator, simulatorItems } = await import("./suites/simulator.ts");
  if (values.list === true) for (const id of simulatorItems(only)) console.log(`simulator: ${id}`);
  else await benchSimulator(values.out, only);
}
if (wanted.includes("webgpu")) {
  const { benchWebgpu, webgpuItems } = await import("./suites/webgpu.ts");
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (values.list === true) for (const id of webgpuItems(only, sizes)) console.log(`webgpu: ${id}`);
  else await benchWebgpu({ directory: values.out, only, sizes, rounds });
}
const onDevice = wanted.filter((name) => name in suites);
if (onDevice.length === 0) process.exit(0);

const backend = await createCudaBackend({ device: Number(values.device) });
if (!(backend instanceof CudaBackend)) {
  console.error(`${backend.reason} ${backend.remedy}`);
  process.exit(1);
}

const selection: Selection = {
  directory: values.out,
  only,
  shard: values.shard === undefined ? undefined : parseShard(values.shard),
  seconds: values.seconds === undefined ? undefined : Number(values.seconds),
  again: values.again,
};

try {
  for (const name of onDevice) {
    const suite = await suites[name]!();
    if (values.list === true) {
      for (const { id } of select(suite.items(backend), selection)) console.log(`${name}: ${id}`);
    } else {
      await runSuite(suite, backend, selection);
    }
  }
} finally {
  backend.dispose();
}
