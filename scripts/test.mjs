/**
 * `npm test`: everything that needs no GPU. Every step runs even when an earlier one failed, so that one run tells all;
 * the end names what failed. Steps do not depend on each other, except that the package and the command come from the
 * build.
 */

import { spawnSync } from "node:child_process";

const bin = (name) => `node_modules/.bin/${name}`;
const projects = ["unit", "types", "conformance", "examples", "package", "architecture"];

const steps = [
  ["build", bin("tsdown"), "--logLevel", "warn"],
  ["tests", bin("vitest"), "run", ...projects.flatMap((name) => ["--project", name])],
  ["browser tests", bin("vitest"), "run", "--config", "vitest.browser.config.ts"],
  ["import arrows", "npm", "run", "--silent", "arrows"],
  ["types", "npm", "run", "--silent", "typecheck"],
  ["lint", "npm", "run", "--silent", "lint"],
];

const outcomes = steps.map(([name, command, ...parameters]) => {
  console.log(`\n── ${name}`);
  const begin = performance.now();
  const { status, error } = spawnSync(command, parameters, {
    stdio: "inherit",
    // The package tests would build again if they did not know.
    env: { ...process.env, TILEWRIGHT_BUILT: "1" },
  });
  if (error) console.error(error.message);
  return { name, ok: status === 0, seconds: (performance.now() - begin) / 1000 };
});

console.log("\n── summary");
for (const { name, ok, seconds } of outcomes) {
  console.log(`${ok ? "ok    " : "FAILED"} ${name} (${seconds.toFixed(1)} s)`);
}
process.exitCode = outcomes.every(({ ok }) => ok) ? 0 : 1;
