/**
 * @file Facts of NVIDIA GPUs by compute capability (CUDA C++ Programming Guide, "Compute Capabilities"; PTX ISA, the
 * "Target ISA Notes" of each instruction). Numbers that a driver tells replace the documented ones.
 */
import { UnsupportedError } from "../errors.ts";
import type { TypeName } from "../types/types.ts";
import type { MatrixInstruction, TargetFacts } from "./facts.ts";

/** Targets that PTX is written for. */
export type NvidiaTargetName = "sm_75" | "sm_80" | "sm_86" | "sm_89" | "sm_90" | "sm_90a";

/** What a driver tells of one GPU; sizes in bytes. What is left out comes from the documentation of its architecture. */
export interface NvidiaDescription {
  /** Major and minor number: [9, 0] for an H100. */
  readonly computeCapability: readonly [number, number];
  /** "a": instructions of this very architecture too (wgmma, setmaxnreg), whose text runs nowhere else. */
  readonly features?: "a" | undefined;
  readonly sharedBytesPerBlockOptin?: number | undefined;
  readonly sharedBytesPerMultiprocessor?: number | undefined;
  readonly registersPerMultiprocessor?: number | undefined;
  readonly multiprocessors?: number | undefined;
  readonly l2Bytes?: number | undefined;
  readonly memoryBytes?: number | undefined;
}

const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Documented numbers of an architecture; the machine's are those of its common data-centre or desktop part. */
interface Architecture {
  readonly sharedBytesPerBlock: number;
  readonly sharedBytesPerMultiprocessor: number;
  readonly multiprocessors: number;
  readonly l2Bytes: number;
  readonly memoryBytes: number;
}

const architectures: ReadonlyMap<number, Architecture> = new Map([
  [75, architecture(64, 64, 40, 4 * MiB, 16 * GiB)],
  [80, architecture(163, 164, 108, 40 * MiB, 40 * GiB)],
  [86, architecture(99, 100, 84, 6 * MiB, 24 * GiB)],
  [89, architecture(99, 100, 128, 72 * MiB, 24 * GiB)],
  [90, architecture(227, 228, 132, 50 * MiB, 80 * GiB)],
]);

function architecture(
  blockKiB: number,
  processorKiB: number,
  multiprocessors: number,
  l2Bytes: number,
  memoryBytes: number,
): Architecture {
  return {
    sharedBytesPerBlock: blockKiB * KiB,
    sharedBytesPerMultiprocessor: processorKiB * KiB,
    multiprocessors,
    l2Bytes,
    memoryBytes,
  };
}

type Shape = readonly [m: number, n: number, k: number];

function instructions(
  a: TypeName,
  b: TypeName,
  accumulators: readonly TypeName[],
  shapes: readonly Shape[],
): readonly MatrixInstruction[] {
  return accumulators.flatMap((accumulator) => shapes.map(([m, n, k]) => ({ a, b, accumulator, m, n, k })));
}

/** Every pairing of two types, each of which can be either operand. */
function pairings(
  types: readonly [TypeName, TypeName],
  accumulators: readonly TypeName[],
  shapes: readonly Shape[],
): readonly MatrixInstruction[] {
  return types.flatMap((a) => types.flatMap((b) => instructions(a, b, accumulators, shapes)));
}

/** mma.sync. On sm_90 the assembler emulates the fp8 forms at the rate of f16. */
function mmaInstructions(capability: number): readonly MatrixInstruction[] {
  if (capability < 80) {
    return [
      ...instructions("f16", "f16", ["f16", "f32"], [[16, 8, 8]]),
      ...pairings(["i8", "u8"], ["i32"], [[8, 8, 16]]),
    ];
  }
  return [
    ...instructions(
      "f16",
      "f16",
      ["f16", "f32"],
      [
        [16, 8, 8],
        [16, 8, 16],
      ],
    ),
    ...instructions(
      "bf16",
      "bf16",
      ["f32"],
      [
        [16, 8, 8],
        [16, 8, 16],
      ],
    ),
    ...instructions(
      "tf32",
      "tf32",
      ["f32"],
      [
        [16, 8, 4],
        [16, 8, 8],
      ],
    ),
    ...pairings(
      ["i8", "u8"],
      ["i32"],
      [
        [8, 8, 16],
        [16, 8, 16],
        [16, 8, 32],
      ],
    ),
    ...instructions(
      "b1",
      "b1",
      ["i32"],
      [
        [8, 8, 128],
        [16, 8, 128],
        [16, 8, 256],
      ],
    ),
    ...instructions(
      "f64",
      "f64",
      ["f64"],
      capability < 90
        ? [[8, 8, 4]]
        : [
            [8, 8, 4],
            [16, 8, 4],
            [16, 8, 8],
            [16, 8, 16],
          ],
    ),
    ...(capability < 89 ? [] : pairings(["e4m3", "e5m2"], ["f32"], [[16, 8, 32]])),
  ];
}

const wmmaShapes: readonly Shape[] = [
  [16, 16, 16],
  [8, 32, 16],
  [32, 8, 16],
];

function wmmaInstructions(capability: number): readonly MatrixInstruction[] {
  const early = [
    ...instructions("f16", "f16", ["f16", "f32"], wmmaShapes),
    ...instructions("i8", "i8", ["i32"], wmmaShapes),
    ...instructions("u8", "u8", ["i32"], wmmaShapes),
  ];
  if (capability < 80) return early;
  return [
    ...early,
    ...instructions("bf16", "bf16", ["f32"], wmmaShapes),
    ...instructions("tf32", "tf32", ["f32"], [[16, 16, 8]]),
    ...instructions("f64", "f64", ["f64"], [[8, 8, 4]]),
  ];
}

const widest = 256;

function warpgroupInstructions(): readonly MatrixInstruction[] {
  const at = (k: number): readonly Shape[] => [[64, widest, k]];
  return [
    ...instructions("f16", "f16", ["f16", "f32"], at(16)),
    ...instructions("bf16", "bf16", ["f32"], at(16)),
    ...instructions("tf32", "tf32", ["f32"], at(8)),
    ...pairings(["e4m3", "e5m2"], ["f16", "f32"], at(32)),
    ...pairings(["i8", "u8"], ["i32"], at(32)),
    ...instructions("b1", "b1", ["i32"], at(256)),
  ];
}

function atomics(capability: number): ReadonlyMap<string, ReadonlySet<TypeName>> {
  const integers: readonly TypeName[] = ["i32", "u32", "i64", "u64"];
  const words: ReadonlySet<TypeName> = new Set<TypeName>([...integers, "f32", "f64"]);
  const add = new Set<TypeName>([...integers, "f16", "f32", "f64"]);
  if (capability >= 90) add.add("bf16");
  const whole = new Set(integers);
  return new Map<string, ReadonlySet<TypeName>>([
    ["add", add],
    ["min", whole],
    ["max", whole],
    ["and", whole],
    ["or", whole],
    ["xor", whole],
    ["exchange", words],
    ["compareExchange", words],
  ]);
}

/** dp4a. */
const packedDots: TargetFacts["packedDot"] = [
  ["i8", "i8"],
  ["i8", "u8"],
  ["u8", "i8"],
  ["u8", "u8"],
];

const storage: ReadonlySet<TypeName> = new Set<TypeName>([
  "f16",
  "bf16",
  "f32",
  "f64",
  "e4m3",
  "e5m2",
  "i8",
  "i16",
  "i32",
  "i64",
  "u8",
  "u16",
  "u32",
  "u64",
]);

function arithmetic(capability: number): ReadonlySet<TypeName> {
  const everywhere: readonly TypeName[] = ["f16", "f32", "f64", "i32", "i64", "u32", "u64", "index"];
  return new Set<TypeName>(capability < 80 ? everywhere : [...everywhere, "bf16"]);
}

/** The documented architecture whose text runs on a capability: the newest that is not newer. */
function textCapability(capability: number, name: string): number {
  const found = [...architectures.keys()].filter((known) => known <= capability).at(-1);
  if (found === undefined) {
    throw new UnsupportedError(
      `compute capability ${name} is too old: 7.5 (Turing) or later is needed; the simulator runs everywhere`,
    );
  }
  return found;
}

/**
 * Facts of a GPU from its compute capability and what its driver tells. GPUs newer than those known here get text of the
 * newest known architecture, which their drivers translate.
 *
 * @throws UnsupportedError below compute capability 7.5
 */
export function nvidiaFacts(description: NvidiaDescription): TargetFacts {
  const [major, minor] = description.computeCapability;
  const capability = textCapability(major * 10 + minor, `${major}.${minor}`);
  const documented = architectures.get(capability)!;
  const exact = description.features === "a" && major * 10 + minor === 90;
  const hopper = capability >= 90;
  return {
    name: `sm_${capability}${exact ? "a" : ""}`,
    language: "ptx",
    subgroup: { width: 32 },
    arithmetic: arithmetic(capability),
    storage,
    limits: {
      threadsPerBlock: 1024,
      sharedBytes: description.sharedBytesPerBlockOptin ?? documented.sharedBytesPerBlock,
      registersPerThread: 255,
      namedBarriers: 16,
      gridX: 2 ** 31 - 1,
      gridY: 65535,
      gridZ: 65535,
      blocksPerCluster: hopper ? 8 : 1,
    },
    mma: mmaInstructions(capability),
    wmma: wmmaInstructions(capability),
    warpgroupMma: exact ? warpgroupInstructions() : [],
    loadMatrix: true,
    storeMatrix: hopper,
    asyncCopy: capability >= 80,
    bulkCopy: hopper,
    barriers: capability >= 80,
    registerReallocation: exact,
    namedBarriers: true,
    subgroupOperations: true,
    packedDot: capability >= 61 ? packedDots : [],
    fp8Conversion: capability >= 89,
    byteAddressable: true,
    atomics: atomics(capability),
    machine: {
      multiprocessors: description.multiprocessors ?? documented.multiprocessors,
      sharedBytesPerMultiprocessor:
        description.sharedBytesPerMultiprocessor ?? documented.sharedBytesPerMultiprocessor,
      registersPerMultiprocessor: description.registersPerMultiprocessor ?? 64 * KiB,
      l2Bytes: description.l2Bytes ?? documented.l2Bytes,
      memoryBytes: description.memoryBytes ?? documented.memoryBytes,
    },
  };
}

/** Documented facts of a target, for writing kernels without a GPU. */
export function nvidiaTarget(name: NvidiaTargetName): TargetFacts {
  const digits = name.slice(3, 5);
  return nvidiaFacts({
    computeCapability: [Number(digits[0]), Number(digits[1])],
    features: name.endsWith("a") ? "a" : undefined,
  });
}
