/** @file Interning: components of the same parameters are the same object, so that kinds made of them share a kernel. */

/** Gives the thing of a name: the same each time, made the first time. */
export type Interner<T> = (name: string, make: (name: string) => T) => T;

/** An interner with nothing in it. */
export function interner<T>(): Interner<T> {
  const known: Map<string, T> = new Map();
  return (name, make) => {
    const found = known.get(name);
    if (found !== undefined) return found;
    const made = make(name);
    known.set(name, made);
    return made;
  };
}
