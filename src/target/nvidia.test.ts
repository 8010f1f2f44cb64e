import { describe, expect, it } from "vitest";
import { UnsupportedError } from "../errors.ts";
import { nvidiaFacts, nvidiaTarget } from "./nvidia.ts";

describe("facts of NVIDIA GPUs", () => {
  it("grow with the architecture", () => {
    const names = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"] as const;
    const having = (test: (name: (typeof names)[number]) => boolean): string => names.filter(test).join(" ");
    expect(having((name) => nvidiaTarget(name).asyncCopy)).toBe("sm_80 sm_86 sm_89 sm_90 sm_90a");
    expect(having((name) => nvidiaTarget(name).fp8Conversion)).toBe("sm_89 sm_90 sm_90a");
    expect(having((name) => nvidiaTarget(name).bulkCopy)).toBe("sm_90 sm_90a");
    expect(having((name) => nvidiaTarget(name).warpgroupMma.length > 0)).toBe("sm_90a");
    expect(having((name) => nvidiaTarget(name).registerReallocation)).toBe("sm_90a");
    expect(having((name) => nvidiaTarget(name).mma.some((one) => one.a === "f64" && one.m === 16))).toBe(
      "sm_90 sm_90a",
    );
  });

  it("name the target after themselves", () => {
    for (const name of ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"] as const) {
      expect(nvidiaTarget(name).name).toBe(name);
    }
  });

  it("take what the driver tells over what is documented", () => {
    const facts = nvidiaFacts({
      computeCapability: [9, 0],
      features: "a",
      multiprocessors: 114,
      sharedBytesPerBlockOptin: 232_448,
    });
    expect(facts.machine.multiprocessors).toBe(114);
    expect(facts.limits.sharedBytes).toBe(232_448);
    expect(nvidiaTarget("sm_90").limits.sharedBytes).toBe(232_448);
    expect(nvidiaTarget("sm_80").limits.sharedBytes).toBe(166_912);
  });

  it("give newer GPUs text that their drivers translate, and refuse older ones", () => {
    expect(nvidiaFacts({ computeCapability: [12, 0], features: "a" }).name).toBe("sm_90");
    expect(nvidiaFacts({ computeCapability: [8, 7] }).name).toBe("sm_86");
    expect(() => nvidiaFacts({ computeCapability: [7, 0] })).toThrow(UnsupportedError);
  });
});
