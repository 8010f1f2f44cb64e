/** @file `npm run report`: fills the tables and figures of docs/ from the results that are kept. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { reportFiles } from "./pages.ts";

for (const [path, content] of reportFiles()) {
  writeFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), content);
  console.log(path);
}
