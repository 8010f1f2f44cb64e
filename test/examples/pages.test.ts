import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CodeBlock, codeBlocks } from "./blocks.ts";
import { runProgram } from "./program.ts";
import type { ProgramOutcome } from "./run-programs.ts";

/** Every `ts` block of these pages is a program that runs; a `text` block right after it is what it prints. */
const pages = ["README.md", "docs/guide.md"];

const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

let folder: string;

beforeAll(() => {
  // Inside the repository, so that `tilewright` is this package; hidden, so that no other tool looks at it.
  folder = mkdtempSync(fileURLToPath(new URL(".page-", import.meta.url)));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const fileOf = (page: string, line: number): string =>
  join(folder, `${page.replaceAll("/", "-")}-${line}.ts`);

interface Program {
  readonly line: number;
  readonly code: string;
  readonly output: string | undefined;
}

function programsOf(page: string): readonly Program[] {
  const blocks = codeBlocks(page);
  return blocks.flatMap((block, position) => {
    if (block.language !== "ts") return [];
    const next: CodeBlock | undefined = blocks[position + 1];
    return [
      { line: block.line, code: block.text, output: next?.language === "text" ? next.text : undefined },
    ];
  });
}

/** Writes a page's programs, each to a file of its own. */
function writePrograms(page: string): readonly string[] {
  return programsOf(page).map(({ line, code }) => {
    const path = fileOf(page, line);
    writeFileSync(path, code);
    return path;
  });
}

it("pages have programs that type-check", async () => {
  const files = pages.flatMap(writePrograms);
  const project = join(folder, "pages.json");
  writeFileSync(
    project,
    JSON.stringify({ extends: "../../../tsconfig.json", include: [], exclude: [], files }),
  );
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", project]).catch(
    (error: { readonly stdout: string }) => error,
  );
  // What is wrong elsewhere is told by `npm run typecheck`.
  expect(stdout.split("\n").filter((line) => line.includes(".page-"))).toEqual([]);
});

describe.each(pages)("%s", (page) => {
  let outcomes: Readonly<Record<string, ProgramOutcome>>;
  beforeAll(async () => {
    outcomes = JSON.parse(await runProgram("test/examples/run-programs.ts", ...writePrograms(page)));
  }, 300_000);

  it("has programs", () => {
    expect(programsOf(page).length).toBeGreaterThan(0);
  });

  it.each(programsOf(page))("runs the program in line $line", ({ line, output }) => {
    const { printed, error } = outcomes[fileOf(page, line)]!;
    expect(error).toBeUndefined();
    if (output !== undefined) expect(printed).toBe(output);
  });
});

it("the guide's components have as many lines as it says", () => {
  const stated = /\*\*(.+?) \((\d+) lines\)\.\*\*/;
  const text = readFileSync(fileURLToPath(new URL("../../docs/guide.md", import.meta.url)), "utf8");
  const [, ...parts] = text.split(/(?=\*\*.+? \(\d+ lines\)\.\*\*)/);
  expect(parts.length).toBe(5);
  for (const part of parts) {
    const [, name, lines] = stated.exec(part)!;
    const [, program] = /```ts\n([\s\S]*?)```/.exec(part)!;
    // Without imports, up to the program that uses it.
    const component = program!.replace(/^import .*\n/gm, "").split(/^await using/m)[0]!;
    const counted = component.split("\n").filter((line) => /\S/.test(line) && !/^\s*\/\//.test(line));
    expect(`${name}: ${lines}`).toBe(`${name}: ${counted.length}`);
  }
});
