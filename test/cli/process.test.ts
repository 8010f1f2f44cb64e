import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { f32 } from "../../src/types/index.ts";
import { randomMatrix, save } from "./matrices.ts";
import { temporaryFolder } from "./run.ts";

/** The command as a process of its own. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = temporaryFolder();

interface Ending {
  readonly status: number | null;
  readonly out: string;
  readonly error: string;
}

function start(...args: readonly string[]): {
  readonly process: ChildProcess;
  readonly ending: Promise<Ending>;
} {
  const loading = ["--conditions=tilewright-source", "--import", "tsx", "src/cli/main.ts"];
  const child = spawn(process.execPath, [...loading, ...args], {
    cwd: root,
    env: { ...process.env, TILEWRIGHT_DUMP: folder.path("kernels") },
  });
  let [out, error] = ["", ""];
  child.stdout.on("data", (data) => {
    out += data;
  });
  child.stderr.on("data", (data) => {
    error += data;
  });
  const ending = new Promise<Ending>((resolve) => {
    child.on("close", (status) => resolve({ status, out, error }));
  });
  return { process: child, ending };
}

it("ends with the status of its work", async () => {
  const [good, wrong, unwise] = await Promise.all([
    start("--version").ending,
    start("gemm", "none.npy", "none.npy", "-o", folder.path("d.npy")).ending,
    start("nothing").ending,
  ]);
  expect(good).toMatchObject({ status: 0, error: "" });
  expect(wrong.status).toBe(1);
  expect(wrong.error).toMatch(/^tilewright: none\.npy: cannot be opened.*\n$/);
  expect(unwise.status).toBe(2);
});

/** Resolves when a kernel has been compiled: the simulator is at work then. */
async function compiled(): Promise<void> {
  while (!existsSync(folder.path("kernels"))) await setTimeout(50);
  await setTimeout(200);
}

it.each(["SIGINT", "SIGTERM"] as const)("leaves no file behind when %s stops its work", async (signal) => {
  await save(folder.path("a.npy"), f32, randomMatrix(f32, 600, 600, 1));
  writeFileSync(folder.path("d.npy"), "precious");
  const args = [folder.path("a.npy"), folder.path("a.npy"), "-o", folder.path("d.npy"), "--operator", "fma"];
  const { process: child, ending } = start("gemm", ...args, "--device", "simulator");
  await compiled();
  child.kill(signal);
  const { status, error } = await ending;
  expect({ status, error }).toEqual({
    status: 130,
    error: expect.stringMatching(/^tilewright: .*(stopped|aborted).*\n$/),
  });
  expect(readdirSync(folder.path()).sort()).toEqual(["a.npy", "d.npy", "kernels"]);
  expect(readFileSync(folder.path("d.npy"), "utf8")).toBe("precious");
});

it("does not mind a reader that goes away", async () => {
  const { process: child, ending } = start("emit", "gemm", "--target", "sm_80");
  child.stdout?.once("data", () => child.stdout?.destroy());
  expect(await ending).toMatchObject({ status: 0, error: "" });
});
