/**
 * @file Specifications of contractions: `"bda,dc->abc"` names the dimensions of A, B and D, as in Einstein's notation.
 *
 * An index in A, B and D counts through a batch; one in A and D belongs to the rows of a product, one in B and D to its
 * columns; one in A and B alone is summed over. Anything else is no contraction, and is refused by name.
 */
import { ArgumentError } from "../../errors.ts";

/** What an index does. */
export type IndexRole = "batch" | "row" | "column" | "summed";

/** A specification that was read. */
export interface Specification {
  readonly text: string;
  /** Indices of each array, dimension by dimension. */
  readonly a: readonly string[];
  readonly b: readonly string[];
  readonly d: readonly string[];
  /** Role of every index. */
  readonly roles: ReadonlyMap<string, IndexRole>;
}

/** An array's indices and where in the text they begin. */
interface Term {
  readonly name: "A" | "B" | "D";
  readonly start: number;
  readonly indices: readonly string[];
}

function refuse(text: string, position: number, what: string): ArgumentError {
  return new ArgumentError(`contract: ${JSON.stringify(text)}, position ${position}: ${what}`);
}

/**
 * Reads a specification: letters a to z and A to Z, a comma between A and B, an arrow before D, nothing else.
 * @throws ArgumentError naming the index and its position, counted from 0
 */
export function readSpecification(text: string): Specification {
  if (typeof text !== "string") {
    throw new ArgumentError(
      `contract: the specification is a text such as "bda,dc->abc", not ${String(text)}`,
    );
  }
  const [a, b, d] = terms(text);
  for (const term of [a, b, d]) checkTerm(text, term);
  const roles = new Map<string, IndexRole>();
  const places: readonly (readonly [Term, number, string])[] = [a, b, d].flatMap((term) =>
    term.indices.map((index, i) => [term, term.start + i, index] as const),
  );
  for (const [term, position, index] of places) {
    if (roles.has(index)) continue;
    const [inA, inB, inD] = [a, b, d].map(({ indices }) => indices.includes(index));
    if (term.name === "D") {
      throw refuse(
        text,
        position,
        `index ${index} of D is in neither A nor B, so nothing says how long it is`,
      );
    }
    if (!inD && !(inA && inB)) {
      const axis = term.indices.indexOf(index);
      throw refuse(
        text,
        position,
        `index ${index} is in ${term.name} alone and not in D: sum over it first, reduce(${term.name.toLowerCase()}, "sum", { axis: ${axis} }) of tilewright/array-ops does, or keep it in D`,
      );
    }
    roles.set(index, inA && inB ? (inD ? "batch" : "summed") : inA ? "row" : "column");
  }
  return { text, a: a.indices, b: b.indices, d: d.indices, roles };
}

/** The three lists of indices. */
function terms(text: string): readonly [Term, Term, Term] {
  const stray = /[^A-Za-z,>-]/.exec(text);
  if (stray !== null) {
    throw refuse(
      text,
      stray.index,
      `${JSON.stringify(stray[0])} is no index; indices are letters a to z and A to Z`,
    );
  }
  const comma = text.indexOf(",");
  if (comma < 0)
    throw refuse(text, text.length, 'a comma between the indices of A and B is missing ("ab,bc->ac")');
  const arrow = text.indexOf("->");
  if (arrow < 0)
    throw refuse(text, text.length, 'the indices of D are missing; write them after an arrow ("ab,bc->ac")');
  const extra = /[,>-]/g;
  for (let found = extra.exec(text); found !== null; found = extra.exec(text)) {
    if (found.index === comma || found.index === arrow || found.index === arrow + 1) continue;
    throw refuse(
      text,
      found.index,
      `unexpected ${JSON.stringify(found[0])}; there are two arrays, and one arrow`,
    );
  }
  if (comma > arrow) throw refuse(text, comma, "the comma between A and B stands before the arrow");
  return [
    { name: "A", start: 0, indices: [...text.slice(0, comma)] },
    { name: "B", start: comma + 1, indices: [...text.slice(comma + 1, arrow)] },
    { name: "D", start: arrow + 2, indices: [...text.slice(arrow + 2)] },
  ];
}

function checkTerm(text: string, { name, start, indices }: Term): void {
  indices.forEach((index, i) => {
    const count = indices.filter((other) => other === index).length;
    if (count === 1) return;
    const again = indices.indexOf(index, i + 1);
    const hint =
      name === "D"
        ? "D has each index once"
        : `a diagonal is a view: ${name.toLowerCase()}.strided() with the two strides added makes one dimension of it`;
    throw refuse(
      text,
      start + again,
      `index ${index} is in ${name} ${count === 2 ? "twice" : `${count} times`}; ${hint}`,
    );
  });
}
