/**
 * The import arrows of src/, checked by `npm run arrows` with type imports counted.
 *
 *   errors ← types ← target ← ir ← passes, codegen, lang ← tile ← families
 *
 * Folders are layers and imports point down. Each layer lists all that it may see; a new folder must be entered here
 * before anything in it can import from elsewhere.
 */

const families = ["gemm", "array-ops", "stencil", "pipeline", "bnn"];
const concreteDevices = ["cuda", "webgpu", "simulator"];

/** What a family may know of devices: their interfaces, never a concrete one. */
const deviceInterfaces = ["runtime/device.ts", "runtime/array.ts"];

const runtimeOwn = ["runtime/(?!compile[./-]|open[.]|cuda/|webgpu/|simulator/)"];
const belowRuntime = ["types", "target", "ir", "lang", "tile"];

/**
 * Layer → what it may import besides itself and src/errors.ts. Keys and entries are folders of src/, files of src/, or
 * regular expressions below src/ for the runtime, whose files differ in rank.
 */
const layers = {
  "errors.ts": [],
  types: [],
  target: ["types"],
  ir: ["types", "target"],
  passes: ["types", "target", "ir"],
  codegen: ["types", "target", "ir"],
  lang: ["types", "target", "ir", "runtime/host"],
  tile: ["types", "target", "ir", "lang"],
  npy: ["types", "runtime/host"],
  tuning: ["types", "target", "runtime/host", ...deviceInterfaces],
  ...Object.fromEntries(
    families.map((family) => [family, ["types", "target", "lang", "tile", "tuning", ...deviceInterfaces]]),
  ),
  "runtime/host": [],
  // The one place where tracing, passes and code generators meet.
  "runtime/compile": [...belowRuntime, "passes", "codegen", ...runtimeOwn],
  ...Object.fromEntries(
    concreteDevices.map((device) => [
      `runtime/${device}`,
      [...belowRuntime, ...runtimeOwn, "runtime/compile"],
    ]),
  ),
  "runtime/open.ts": [
    ...belowRuntime,
    ...runtimeOwn,
    "runtime/compile",
    ...concreteDevices.map((d) => `runtime/${d}`),
  ],
};

/** `types` → `^src/types/`, `errors.ts` → `^src/errors\.ts$`, `runtime/compile` → the file, its folder and compile-*.ts. */
const pathOf = (entry) => {
  if (entry.includes("(")) return `^src/${entry}`;
  if (entry.endsWith(".ts")) return `^src/${entry.replaceAll(".", "\\.")}$`;
  return entry === "runtime/compile" ? "^src/runtime/compile[./-]" : `^src/${entry}/`;
};

const layerRules = Object.entries(layers).map(([layer, below]) => ({
  name: `arrows-${layer.replaceAll(/[/.]/g, "-")}`,
  comment: `src/${layer} sees only: ${["itself", "errors", ...below].join(", ")}.`,
  severity: "error",
  from: { path: pathOf(layer) },
  to: { path: "^src/", pathNot: [pathOf(layer), pathOf("errors.ts"), ...below.map(pathOf)] },
}));

/** Package → the only places that may import it. */
const packageHomes = {
  koffi: ["^src/runtime/cuda/"],
  webgpu: ["^src/runtime/webgpu/"],
  commander: ["^src/cli/"],
};

const nodeHomes = [
  "^src/runtime/cuda/",
  "^src/runtime/webgpu/",
  "^src/runtime/host/node\\.ts$",
  "^src/cli/",
  "^src/npy/node\\.ts$",
];

const tests = "\\.(test|test-d)\\.ts$";

/** Files beside the sources that serve their tests: free to import, not to be imported by the library. */
const testSupport = "-for-tests\\.ts$";

const list = (paths) => (Array.isArray(paths) ? paths : paths === undefined ? [] : [paths]);

const freeingTestSupport = (rule) => ({
  ...rule,
  from: { ...rule.from, pathNot: [...list(rule.from.pathNot), testSupport] },
});

const rules = [
  ...layerRules,
  {
    name: "test-support-is-for-tests",
    comment: "A file named *-for-tests.ts is not published; only tests may import it.",
    severity: "error",
    from: { path: "^(src|examples)/" },
    to: { path: testSupport },
  },
  {
    name: "arrows-runtime-interfaces",
    comment:
      "The device interfaces see the kernel language, never passes, code generators or a concrete device.",
    severity: "error",
    from: { path: `^src/${runtimeOwn[0]}`, pathNot: "^src/runtime/host/" },
    to: {
      path: "^src/",
      pathNot: [pathOf("errors.ts"), ...belowRuntime.map(pathOf), `^src/${runtimeOwn[0]}`],
    },
  },
  {
    name: "arrows-unknown-folder",
    comment:
      "A folder of src/ that .dependency-cruiser.mjs does not know: give it its place among the layers.",
    severity: "error",
    from: {
      path: "^src/",
      pathNot: [...Object.keys(layers).map(pathOf), "^src/runtime/", "^src/cli/", "^src/index\\.ts$"],
    },
    to: { path: "^src/" },
  },
  {
    name: "only-compile-joins",
    comment: "Only runtime/compile joins tracing, passes and code generators.",
    severity: "error",
    from: { path: "^src/(cli/|index\\.ts$)" },
    to: { path: "^src/(passes|codegen)/" },
  },
  {
    name: "entries-are-for-users",
    comment: "src/index.ts and the command are for users; nothing inside imports them.",
    severity: "error",
    from: { path: "^src/", pathNot: ["^src/cli/", "^src/index\\.ts$"] },
    to: { path: "^src/(cli/|index\\.ts$)" },
  },
  {
    name: "host-by-its-name",
    comment: "Import the host facilities as #host: a path would bring Node's into a browser's bundle.",
    severity: "error",
    from: { path: "^src/" },
    to: { path: "^src/runtime/host/", dependencyTypesNot: ["aliased-subpath-import"] },
  },
  {
    name: "no-cycles",
    comment: "A cycle makes two files one.",
    severity: "error",
    from: { path: "^src/" },
    to: { circular: true },
  },
  {
    name: "node-in-its-corner",
    comment: "node: modules are for the drivers' folders, the host file and the command; browsers have none.",
    severity: "error",
    from: { path: "^src/", pathNot: nodeHomes },
    to: { dependencyTypes: ["core"] },
  },
  ...Object.entries(packageHomes).map(([name, homes]) => ({
    name: `${name}-in-its-corner`,
    comment: `${name} may be imported from ${homes.join(", ")} only.`,
    severity: "error",
    from: { path: "^src/", pathNot: homes },
    to: { path: `(^|/)node_modules/${name}/|^${name}$` },
  })),
  {
    name: "no-other-packages",
    comment: "The library has no dependencies but the ones listed in packageHomes.",
    severity: "error",
    from: { path: "^src/" },
    to: {
      dependencyTypes: ["npm", "npm-dev", "npm-optional", "npm-peer", "npm-no-pkg", "npm-unknown"],
      pathNot: Object.keys(packageHomes).map((name) => `(^|/)node_modules/${name}/|^${name}$`),
    },
  },
  {
    name: "resolvable",
    comment: "An import that leads nowhere escapes every other rule.",
    severity: "error",
    from: { path: "^(src|examples)/" },
    to: { couldNotResolve: true, pathNot: ["^koffi$", "^webgpu$"] },
  },
  {
    name: "examples-are-users",
    comment: "Examples import the package by its name, as its users do.",
    severity: "error",
    from: { path: "^examples/" },
    to: { path: "^src/", dependencyTypes: ["local"] },
  },
];

export default {
  forbidden: rules.map(freeingTestSupport),
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: `${tests}|^dist/|__snapshots__` },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["tilewright-source", "node", "import", "default"],
      extensions: [".ts", ".mjs", ".js", ".json"],
    },
    reporterOptions: { text: { highlightFocused: true } },
  },
};
