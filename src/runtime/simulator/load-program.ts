/** @file Makes functions from generated text: the only place of the library that does. */
import { UnsupportedError } from "../../errors.ts";
import type { Module } from "../backend.ts";
import { type GeneratedKernel, Program } from "./program.ts";
import { services } from "./services.ts";

/**
 * Loads a module's text.
 *
 * @throws UnsupportedError where a content security policy forbids to make functions from text
 */
export function loadProgram(module: Module): Program {
  return new Program(module.ir, compile(module.text));
}

function compile(text: string): GeneratedKernel {
  let make: (given: typeof services) => GeneratedKernel;
  try {
    make = new Function("services", text) as typeof make;
  } catch (cause) {
    if (cause instanceof SyntaxError) throw cause;
    throw new UnsupportedError(
      "the simulator makes functions from generated text, which this page's content security policy forbids; " +
        "allow 'unsafe-eval' in script-src, or use another device",
      { cause },
    );
  }
  return make(services);
}
