/** @file The code blocks of a page. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface CodeBlock {
  /** Line of the page where the code begins. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
}

/** All fenced blocks of a page of this repository, in order. */
export function codeBlocks(page: string): readonly CodeBlock[] {
  const text = readFileSync(fileURLToPath(new URL(`../../${page}`, import.meta.url)), "utf8");
  return Array.from(text.matchAll(/^```(\S*)[^\n]*\n(.*?)^```$/gms), ({ 1: language, 2: code, index }) => ({
    line: text.slice(0, index).split("\n").length + 1,
    language,
    text: code,
  }));
}
