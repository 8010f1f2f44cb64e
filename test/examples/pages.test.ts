import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CodeBlock, codeBlocks } from "./blocks.ts";
import { runProgram } from "./program.ts";

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

describe.each(pages)("%s", (page) => {
  const blocks = codeBlocks(page);
  const programs = blocks.flatMap((block, position) => {
    if (block.language !== "ts") return [];
    const next: CodeBlock | undefined = blocks[position + 1];
    return [
      { line: block.line, code: block.text, output: next?.language === "text" ? next.text : undefined },
    ];
  });

  it("has programs", () => {
    expect(programs.length).toBeGreaterThan(0);
  });

  it("has programs that type-check", async () => {
    const files = programs.map(({ line, code }) => {
      const path = fileOf(page, line);
      writeFileSync(path, code);
      return path;
    });
    const project = join(folder, `${page.replaceAll("/", "-")}.json`);
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

  it.concurrent.each(programs)("runs the program in line $line", async ({ line, code, output }) => {
    const path = fileOf(page, line);
    writeFileSync(path, code);
    const printed = await runProgram(path);
    if (output !== undefined) expect(printed).toBe(output);
  });
});
