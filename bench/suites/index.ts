/** @file The suites by name. Each is loaded when it is asked for, so that one that cannot load harms no other. */
import type { Suite } from "../suite.ts";

export const suites: Readonly<Record<string, () => Promise<Suite>>> = {
  launch: async () => (await import("./launch.ts")).launchSuite,
  gemm: async () => (await import("./gemm.ts")).gemmSuite,
  "matrix-vector": async () => (await import("./matrix-vector.ts")).matrixVectorSuite,
  alignment: async () => (await import("./alignment.ts")).alignmentSuite,
  components: async () => (await import("./components.ts")).componentsSuite,
  int4: async () => (await import("./int4.ts")).int4Suite,
  evaluation: async () => (await import("./evaluation.ts")).evaluationSuite,
  "planned-launch": async () => (await import("./planned-launch.ts")).plannedLaunchSuite,
  "cold-start": async () => (await import("./cold-start.ts")).coldStartSuite,
  copy: async () => (await import("./copy.ts")).copySuite,
  cublaslt: async () => (await import("./cublaslt.ts")).cublasLtSuite,
};
