/**
 * @file `npm run bench -- SUITE…`: runs suites on the CUDA device and keeps the results. The suite called simulator runs
 * anywhere.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CudaBackend, createCudaBackend } from "../src/runtime/cuda/index.ts";
import { parseShard, runSuite, type Selection, select } from "./suite.ts";
import { suites as general } from "./suites/index.ts";

const suites: typeof general = {
  ...general,
  alignment: async () => (await import("./gemm.ts")).alignmentSuite,
  "planned-launch": async () => (await import("./launch.ts")).plannedLaunchSuite,
};

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
  },
});

const names = [...Object.keys(suites), "simulator"];
const unknown = positionals.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`There is no suite ${unknown.join(", ")}; there are ${names.join(", ")}.`);
  process.exit(2);
}

const wanted = positionals.length > 0 ? positionals : names;
const only = values.only === undefined ? undefined : new RegExp(values.only);
if (wanted.includes("simulator")) {
  const { benchSimulator, simulatorItems } = await import("./simulator.ts");
  if (values.list === true) for (const id of simulatorItems(only)) console.log(`simulator: ${id}`);
  else await benchSimulator(values.out, only);
}
const onDevice = wanted.filter((name) => name !== "simulator");
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
