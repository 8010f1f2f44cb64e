/** @file The JavaScript target. */
export { generateJavaScript, type SimulationMode } from "./kernel.ts";
