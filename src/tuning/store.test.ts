import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { readStored as readInPage, writeStored as writeInPage } from "../runtime/host/browser.ts";
import { readStored, writeStored } from "../runtime/host/node.ts";
import { memoryStore, type TextKeeper, tuningStore } from "./store.ts";

function keeper(text?: string): TextKeeper & { text: string | undefined } {
  return {
    text,
    read() {
      return this.text;
    },
    write(next) {
      this.text = next;
    },
  };
}

describe("a tuning store", () => {
  it("keeps values by device and subject, over programs", () => {
    const kept = keeper();
    tuningStore(kept).put("gpu", "gemm", { k: 8, parts: [1, 2] });
    const later = tuningStore(kept);
    expect(later.get("gpu", "gemm")).toEqual({ k: 8, parts: [1, 2] });
    expect(later.get("other", "gemm")).toBeUndefined();
    expect(JSON.parse(kept.text!)).toMatchObject({ format: "tilewright-tuning", version: 1 });
  });

  it("leaves what another program wrote meanwhile", () => {
    const kept = keeper();
    const [one, two] = [tuningStore(kept), tuningStore(kept)];
    one.put("gpu", "a", 1);
    expect(two.get("gpu", "b")).toBeUndefined();
    two.put("gpu", "b", 2);
    one.put("gpu", "c", 3);
    const all = tuningStore(kept);
    expect(["a", "b", "c"].map((subject) => all.get("gpu", subject))).toEqual([1, 2, 3]);
  });

  it.each([
    ["no JSON", "{"],
    ["another format", '{"format":"x","version":1,"devices":{"gpu":{"a":1}}}'],
    ["another version", '{"format":"tilewright-tuning","version":2,"devices":{"gpu":{"a":1}}}'],
    ["no devices", '{"format":"tilewright-tuning","version":1,"devices":[1]}'],
    ["a list", "[]"],
    ["code", "process.exit(1)"],
  ])("counts %s as empty, and goes on", (_name, text) => {
    const kept = keeper(text);
    const store = tuningStore(kept);
    expect(store.get("gpu", "a")).toBeUndefined();
    store.put("gpu", "b", 2);
    expect(tuningStore(kept).get("gpu", "b")).toBe(2);
  });

  it("is no way to reach prototypes", () => {
    const kept = keeper(
      '{"format":"tilewright-tuning","version":1,"devices":{"__proto__":{"polluted":1},"gpu":{"__proto__":{"x":1}}}}',
    );
    const store = tuningStore(kept);
    store.put("gpu", "a", 1);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(store.get("gpu", "toString")).toBeUndefined();
  });

  it("works in memory where nothing can be kept, and forgets when told", () => {
    const refusing = tuningStore({
      read: () => {
        throw new Error("denied");
      },
      write: () => {
        throw new Error("full");
      },
    });
    refusing.put("gpu", "a", 1);
    expect(refusing.get("gpu", "a")).toBe(1);
    const store = memoryStore();
    store.put("gpu", "a", 1);
    store.put("other", "a", 2);
    store.clear("gpu");
    expect([store.get("gpu", "a"), store.get("other", "a")]).toEqual([undefined, 2]);
    store.clear();
    expect(store.get("other", "a")).toBeUndefined();
  });
});

describe("where text is kept", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
  });

  it("is a file in the cache folder in Node.js", () => {
    const folder = mkdtempSync(join(tmpdir(), "tilewright-cache-"));
    try {
      vi.stubEnv("TILEWRIGHT_CACHE", join(folder, "deep"));
      expect(readStored("tuning.json")).toBeUndefined();
      writeStored("tuning.json", "text");
      expect(readStored("tuning.json")).toBe("text");
      expect(readdirSync(join(folder, "deep"))).toEqual(["tuning.json"]);
      vi.stubEnv("TILEWRIGHT_CACHE", undefined);
      vi.stubEnv("XDG_CACHE_HOME", folder);
      if (process.platform === "linux") {
        writeStored("tuning.json", "other");
        expect(readFileSync(join(folder, "tilewright", "tuning.json"), "utf8")).toBe("other");
      }
      writeFileSync(join(folder, "file"), "");
      vi.stubEnv("TILEWRIGHT_CACHE", join(folder, "file"));
      expect(readStored("tuning.json")).toBeUndefined();
      expect(() => writeStored("tuning.json", "text")).toThrow(/cannot be written/);
      vi.stubEnv("TILEWRIGHT_CACHE", "off");
      writeStored("tuning.json", "nowhere");
      expect(readStored("tuning.json")).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is localStorage in a page, and nothing where the page has none or refuses it", () => {
    const items = new Map<string, string>();
    vi.stubGlobal("localStorage", {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, text: string) => void items.set(key, text),
    });
    writeInPage("tuning.json", "text");
    expect([readInPage("tuning.json"), [...items.keys()]]).toEqual(["text", ["tilewright/tuning.json"]]);
    vi.stubGlobal("localStorage", undefined);
    expect(readInPage("tuning.json")).toBeUndefined();
    writeInPage("tuning.json", "text");
  });
});
