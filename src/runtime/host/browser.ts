/**
 * @file What a browser offers in place of node.ts: nothing that a bundler would have to polyfill.
 */

/** The value of an environment variable: browsers have none. */
export function readEnvironment(_name: string): string | undefined {
  return undefined;
}
