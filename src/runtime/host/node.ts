/**
 * @file What Node.js (and its likes) offers beyond the language. Imported as `#host`; the browser's twin is browser.ts
 * and both export the same names and types.
 */

/** The value of an environment variable, or undefined where there is none. */
export function readEnvironment(name: string): string | undefined {
  return process.env[name];
}
