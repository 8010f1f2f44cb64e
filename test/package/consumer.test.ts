import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, inject, it } from "vitest";

const consumer = inject("consumer");
const entries = inject("entries");
const root = fileURLToPath(new URL("../..", import.meta.url));
const installed = join(consumer, "node_modules", "tilewright");

/** Runs a program in the consumer's folder; a failure shows what it printed. */
async function run(command: string, ...parameters: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(command, parameters, { cwd: consumer });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${parameters.join(" ")} failed:\n${stdout}\n${stderr}`);
  }
}

const tool = (name: string): string => join(root, "node_modules", ".bin", name);

const imports = entries.map((entry, index) => `import * as entry${index} from "${entry}";`);
const uses = entries.map((entry, index) => `  ["${entry}", Object.keys(entry${index}).length],`);
const program = [
  ...imports,
  "const exported: [string, number][] = [",
  ...uses,
  "];",
  "console.log(exported);",
];

describe("the packed library", () => {
  it("keeps no way into its sources, tests or tools", () => {
    const manifest = readFileSync(join(installed, "package.json"), "utf8");
    expect(manifest).not.toContain("tilewright-source");
    expect(JSON.parse(manifest)).not.toHaveProperty("devDependencies");
    expect(existsSync(join(installed, "test"))).toBe(false);
  });

  it("has every file that its manifest names", () => {
    const {
      exports,
      imports: internal,
      bin,
    } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    const named = JSON.stringify({ exports, internal, bin }).match(/\.\/dist\/[^"]+/g) ?? [];
    expect(named.filter((path) => !isUnwritten(path) && !existsSync(join(installed, path)))).toEqual([]);
  });

  it.skipIf(entries.length === 0)(
    "type-checks in a strict project that looks into its declarations",
    async () => {
      writeFileSync(join(consumer, "every-entry.ts"), program.join("\n"));
      writeFileSync(
        join(consumer, "tsconfig.json"),
        JSON.stringify({
          compilerOptions: {
            strict: true,
            target: "ES2022",
            module: "NodeNext",
            lib: ["ES2023", "ESNext.Disposable", "DOM"],
            types: [],
            skipLibCheck: false,
            outDir: "out",
          },
          files: ["every-entry.ts"],
        }),
      );
      await run(tool("tsc"), "-p", "tsconfig.json");
    },
  );

  it.skipIf(entries.length === 0)("loads in Node without its optional packages", async () => {
    const counts = entries.map((entry) => `["${entry}", Object.keys(await import("${entry}")).length]`);
    const script = `console.log(JSON.stringify([${counts.join(", ")}]))`;
    const exported = JSON.parse(await run(process.execPath, "--input-type=module", "--eval", script));
    for (const [entry, count] of exported) expect(count, `exports of ${entry}`).toBeGreaterThan(0);
  });

  it("brings a command that multiplies the shipped matrices", async () => {
    const command = join(consumer, "node_modules", ".bin", "tilewright");
    expect(await run(command, "demo")).toMatch(/^D = A · B .*\n(.*\n)*error .* of what rounding allows\n/);
    expect(await run(command, "emit", "gemm", "--target", "sm_80")).toContain(".target sm_80");
  });
});

/** Whether a path of the manifest belongs to a source file that nobody has written yet. */
function isUnwritten(path: string): boolean {
  const source = path.replace("./dist/", "src/").replace(/\.d\.mts$|\.mjs$/, ".ts");
  return !existsSync(join(root, source));
}

describe.skipIf(isUnwritten("./dist/index.mjs"))(
  "the packed library, by the tools that judge packages",
  () => {
    it("satisfies publint", async () => {
      const { publint } = await import("publint");
      const { formatMessage } = await import("publint/utils");
      const { messages, pkg } = await publint({ pkgDir: installed, strict: true });
      expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    });

    it("resolves to types under every module resolution that ES modules have", async () => {
      await run(tool("attw"), inject("archive"), "--profile", "esm-only", "--no-color", "--no-emoji");
    });
  },
);
