import { arithmeticCases } from "./kernels/arithmetic.ts";
import { collectiveCases } from "./kernels/collectives.ts";
import { controlCases } from "./kernels/control.ts";
import { memoryCases } from "./kernels/memory.ts";
import { runCases } from "./table.ts";

runCases([...arithmeticCases, ...controlCases, ...memoryCases, ...collectiveCases]);
