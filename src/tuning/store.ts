/**
 * @file What tuning found, kept per device: text of a versioned format, read as data and never evaluated. A family checks
 * each value against the device before it believes it.
 *
 * ```json
 * { "format": "tilewright-tuning", "version": 1, "devices": { "webgpu nvidia hopper": { "gemm …": { … } } } }
 * ```
 *
 * Text of another format or version, and text that is no JSON, counts as empty.
 */
import { readStored, writeStored } from "#host";

/** Where text is kept: a file, a page's storage, a variable. */
export interface TextKeeper {
  read(): string | undefined;
  /** @throws whatever keeps the text from being kept */
  write(text: string): void;
}

/** Any JSON. */
export type StoredValue =
  | null
  | boolean
  | number
  | string
  | readonly StoredValue[]
  | { readonly [key: string]: StoredValue };

/** Results of tuning by device and by what was tuned. */
export interface TuningStore {
  get(device: string, subject: string): StoredValue | undefined;
  /** Keeps a value. Where it cannot be written it is kept for as long as the program runs. */
  put(device: string, subject: string, value: StoredValue): void;
  /** Forgets a subject. */
  remove(device: string, subject: string): void;
  /** Forgets what is known of a device, or everything. */
  clear(device?: string): void;
}

const format = "tilewright-tuning";
const version = 1;
const mostCharacters = 4 * 2 ** 20;
/** Of each device; the oldest leave. */
const mostSubjects = 2000;

type Subjects = Map<string, StoredValue>;
type Devices = Map<string, Subjects>;

/** A store over kept text. Other programs' entries survive: text is read again before it is written. */
export function tuningStore(keeper: TextKeeper): TuningStore {
  let known: Devices | undefined;
  const devices = (): Devices => {
    known ??= parse(safely(() => keeper.read()));
    return known;
  };
  const save = (change: (all: Devices) => void): void => {
    const all = merged(parse(safely(() => keeper.read())), devices());
    change(all);
    known = all;
    safely(() => keeper.write(written(all)));
  };
  return {
    get: (device, subject) => devices().get(device)?.get(subject),
    put: (device, subject, value) =>
      save((all) => {
        const subjects = all.get(device) ?? new Map<string, StoredValue>();
        subjects.delete(subject);
        subjects.set(subject, value);
        while (subjects.size > mostSubjects) subjects.delete(subjects.keys().next().value as string);
        all.set(device, subjects);
      }),
    remove: (device, subject) => save((all) => all.get(device)?.delete(subject)),
    clear(device) {
      known = undefined;
      const all = device === undefined ? new Map() : parse(safely(() => keeper.read()));
      if (device !== undefined) all.delete(device);
      known = all;
      safely(() => keeper.write(written(all)));
    },
  };
}

/** A store that lasts as long as the program. */
export function memoryStore(): TuningStore {
  let text: string | undefined;
  return tuningStore({
    read: () => text,
    write: (next) => {
      text = next;
    },
  });
}

let usual: TuningStore | undefined;

/**
 * The store that heuristics consult: a file in the user's cache folder in Node.js (or in the folder that TILEWRIGHT_CACHE
 * names; "off" keeps nothing), `localStorage` in a page, memory where there is neither.
 */
export function usualStore(): TuningStore {
  usual ??= tuningStore({
    read: () => readStored("tuning.json"),
    write: (text) => writeStored("tuning.json", text),
  });
  return usual;
}

function safely<R>(action: () => R): R | undefined {
  try {
    return action();
  } catch {
    // A cache that cannot be read or written is no reason to fail.
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, StoredValue>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string | undefined): Devices {
  const devices: Devices = new Map();
  if (text === undefined || text.length > mostCharacters) return devices;
  const file: unknown = safely(() => JSON.parse(text));
  if (!isRecord(file) || file.format !== format || file.version !== version || !isRecord(file.devices)) {
    return devices;
  }
  for (const [device, subjects] of Object.entries(file.devices)) {
    if (isRecord(subjects)) devices.set(device, new Map(Object.entries(subjects)));
  }
  return devices;
}

/** Both; what this program knows wins. */
function merged(kept: Devices, own: Devices): Devices {
  for (const [device, subjects] of own) {
    kept.set(device, new Map([...(kept.get(device) ?? []), ...subjects]));
  }
  return kept;
}

function written(devices: Devices): string {
  const plain = Object.fromEntries(
    [...devices].map(([device, subjects]) => [device, Object.fromEntries(subjects)]),
  );
  return `${JSON.stringify({ format, version, devices: plain }, undefined, 1)}\n`;
}
