/**
 * @file One fresh process from start to the end of its first product, out of dist/ as users have it:
 * `node cold-start-process.mjs TYPE SIZE` prints the milliseconds of each phase as JSON.
 */
const booted = performance.now();
const { createCudaBackend, isUnavailable } = await import("../../dist/runtime/cuda/index.mjs");
const { createCompiler } = await import("../../dist/runtime/compile.mjs");
const { createDevice } = await import("../../dist/runtime/device.mjs");
const { planGemm } = await import("../../dist/gemm/index.mjs");
const { types } = await import("../../dist/types/index.mjs");
const imported = performance.now();

const backend = await createCudaBackend();
if (isUnavailable(backend)) throw new Error(`${backend.reason} ${backend.remedy}`);
await backend.sync();
const opened = performance.now();

const spent = { trace: 0, driver: 0 };
const load = backend.load.bind(backend);
backend.load = async (module, options) => {
  const start = performance.now();
  const executable = await load(module, options);
  spent.driver += performance.now() - start;
  return executable;
};
const inner = createCompiler(backend);
const compiler = {
  compile: (kernel, options) => {
    const trace = (facts) => {
      const start = performance.now();
      const ir = kernel.trace(facts);
      spent.trace += performance.now() - start;
      return ir;
    };
    return inner.compile({ ...kernel, trace }, options);
  },
};
const device = createDevice(backend, compiler);
const [, , typeName, size] = process.argv;
const shape = [Number(size), Number(size)];
const [a, b] = [device.empty(types[typeName], shape), device.empty(types[typeName], shape)];
await backend.sync();
const allocated = performance.now();

const plan = await planGemm(a, b);
const planned = performance.now();
plan.run();
await device.sync();
const launched = performance.now();

const phases = {
  process: booted,
  import: imported - booted,
  context: opened - imported,
  arrays: allocated - opened,
  trace: spent.trace,
  generate: planned - allocated - spent.trace - spent.driver,
  driver: spent.driver,
  launch: launched - planned,
};
console.log(JSON.stringify({ route: `${plan.kind.schedule}, ${plan.operator}`, phases }));
device.dispose();
