/**
 * @file The dictionary in a `.npy` header: a Python literal with exactly the keys `descr`, `fortran_order` and `shape`.
 *
 * Read by a grammar of its own, one character after the other, in time linear in the text; nothing is evaluated.
 *
 *     header = space "{" [ pair { "," pair } [ "," ] ] "}" space
 *     pair   = string ":" value        space is allowed between any two symbols
 *     value  = string | "True" | "False" | "(" [ integer { "," integer } [ "," ] ] ")"
 */

import { FileError } from "../errors.ts";

/** The header's dictionary. */
export interface HeaderFields {
  /** numpy's name of the element type, such as `"<f4"`. */
  readonly descr: string;
  /** Whether the first index varies fastest. */
  readonly fortranOrder: boolean;
  readonly shape: readonly number[];
}

/** numpy's own limit on the number of dimensions. */
const mostDimensions = 64;

/** Reads the dictionary. @param file what to call the file in messages @throws FileError */
export function parseHeaderLiteral(text: string, file: string): HeaderFields {
  return new LiteralParser(text, file).header();
}

class LiteralParser {
  private position = 0;
  constructor(
    private readonly text: string,
    private readonly file: string,
  ) {}

  header(): HeaderFields {
    let descr: string | undefined;
    let fortranOrder: boolean | undefined;
    let shape: readonly number[] | undefined;
    this.expect("{");
    while (!this.take("}")) {
      const key = this.string();
      this.expect(":");
      if (key === "descr" && descr === undefined) descr = this.descr();
      else if (key === "fortran_order" && fortranOrder === undefined) fortranOrder = this.truth();
      else if (key === "shape" && shape === undefined) shape = this.shape();
      else throw this.error(`the key ${JSON.stringify(key.slice(0, 40))} is foreign or given twice`);
      if (!this.take(",")) {
        this.expect("}");
        break;
      }
    }
    this.skipSpace();
    if (this.position < this.text.length) throw this.error("something follows the dictionary");
    if (descr === undefined) throw this.error("the key 'descr' is missing");
    if (fortranOrder === undefined) throw this.error("the key 'fortran_order' is missing");
    if (shape === undefined) throw this.error("the key 'shape' is missing");
    return { descr, fortranOrder, shape };
  }

  private descr(): string {
    if (this.peek() === "[" || this.peek() === "(") {
      throw new FileError(
        `${this.file}: the elements are structured (a dtype with fields), which cannot be read; ` +
          "save the fields one by one: numpy.save(path, a['field'])",
      );
    }
    return this.string();
  }

  private truth(): boolean {
    if (this.takeWord("True")) return true;
    if (this.takeWord("False")) return false;
    throw this.error("expected True or False");
  }

  private shape(): readonly number[] {
    const shape: number[] = [];
    this.expect("(");
    while (!this.take(")")) {
      shape.push(this.integer());
      if (shape.length > mostDimensions) throw this.error(`more than ${mostDimensions} dimensions`);
      if (!this.take(",")) {
        // (3) is a number in Python, not a tuple.
        if (shape.length === 1) throw this.error("a shape with one dimension is written (n,)");
        this.expect(")");
        break;
      }
    }
    return shape;
  }

  /** A size: digits, and the L that Python 2 could append. */
  private integer(): number {
    this.skipSpace();
    const start = this.position;
    while (isDigit(this.text[this.position])) this.position++;
    const digits = this.text.slice(start, this.position);
    if (digits === "") throw this.error("expected a size of 0 or more");
    const value = Number(digits);
    if (!Number.isSafeInteger(value)) throw this.error("the size is beyond any array");
    if (this.text[this.position] === "L") this.position++;
    return value;
  }

  private string(): string {
    this.skipSpace();
    const quote = this.text[this.position];
    if (quote !== "'" && quote !== '"') throw this.error("expected a quoted string");
    const start = ++this.position;
    while (this.position < this.text.length && this.text[this.position] !== quote) {
      const character = this.text[this.position]!;
      if (character === "\\" || character < " ")
        throw this.error("escapes and control characters are not read");
      this.position++;
    }
    if (this.position === this.text.length) throw this.error("a quoted string does not end");
    return this.text.slice(start, this.position++);
  }

  private peek(): string | undefined {
    this.skipSpace();
    return this.text[this.position];
  }

  private take(symbol: string): boolean {
    if (this.peek() !== symbol) return false;
    this.position++;
    return true;
  }

  private takeWord(word: string): boolean {
    this.skipSpace();
    if (!this.text.startsWith(word, this.position)) return false;
    this.position += word.length;
    return true;
  }

  private expect(symbol: string): void {
    if (!this.take(symbol)) throw this.error(`expected ${symbol}`);
  }

  private skipSpace(): void {
    while (isSpace(this.text[this.position])) this.position++;
  }

  private error(problem: string): FileError {
    return new FileError(
      `${this.file}: the .npy header is not as numpy writes it: ${problem} at character ${this.position} of the ` +
        "dictionary; save the array anew with numpy.save",
    );
  }
}

function isDigit(character: string | undefined): boolean {
  return character !== undefined && character >= "0" && character <= "9";
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\n" || character === "\t" || character === "\r";
}
