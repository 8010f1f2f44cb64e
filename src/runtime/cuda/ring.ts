/** @file Space in a ring: spans are taken at the end and come free from the start, in any order of release. */

const granularity = 256;

/** A part of the ring. */
export interface Span {
  readonly offset: number;
  readonly bytes: number;
}

interface TakenSpan extends Span {
  readonly reserved: number;
  released: boolean;
}

/** Arithmetic of a ring of `capacity` bytes; holds no memory. */
export class Ring {
  readonly capacity: number;
  readonly #spans: TakenSpan[] = [];

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** A contiguous span, or undefined while there is no room. */
  take(bytes: number): Span | undefined {
    const reserved = Math.max(granularity, Math.ceil(bytes / granularity) * granularity);
    const offset = this.#place(reserved);
    if (offset === undefined) return undefined;
    const span = { offset, bytes, reserved, released: false };
    this.#spans.push(span);
    return span;
  }

  /** Gives a span back. */
  release(span: Span): void {
    (span as TakenSpan).released = true;
    while (this.#spans[0]?.released === true) this.#spans.shift();
  }

  #place(bytes: number): number | undefined {
    const first = this.#spans[0];
    const last = this.#spans[this.#spans.length - 1];
    if (first === undefined || last === undefined) return bytes <= this.capacity ? 0 : undefined;
    const start = first.offset;
    const end = last.offset + last.reserved;
    if (last.offset < start) return end + bytes <= start ? end : undefined;
    if (end + bytes <= this.capacity) return end;
    return bytes <= start ? 0 : undefined;
  }
}
