import { describe, expect, it } from "vitest";
import { readSpecification } from "./specification.ts";

describe("a contraction's specification", () => {
  it("says what each index does", () => {
    const { a, b, d, roles } = readSpecification("gbda,gdc->abcg");
    expect([a.join(""), b.join(""), d.join("")]).toEqual(["gbda", "gdc", "abcg"]);
    expect(Object.fromEntries(roles)).toEqual({ g: "batch", b: "row", d: "summed", a: "row", c: "column" });
  });

  it.each([
    ["ab,bc", "position 5: the indices of D are missing"],
    ["abbc->ac", "position 8: a comma between the indices of A and B is missing"],
    ["ab,b,c->ac", 'position 4: unexpected ","'],
    ["ab->c,bc", "position 5: the comma between A and B stands before the arrow"],
    ["ab,bc->a->c", 'position 8: unexpected "-"'],
    ["ab,b-c->ac", 'position 4: unexpected "-"'],
    ["a b,bc->ac", 'position 1: " " is no index'],
    ["ab,b1->a1", 'position 4: "1" is no index'],
    ["aab,bc->ac", "position 1: index a is in A twice; a diagonal is a view"],
    ["ab,bbbc->ac", "position 4: index b is in B 3 times"],
    ["ab,bc->aac", "position 8: index a is in D twice; D has each index once"],
    ["ab,bc->acx", "position 9: index x of D is in neither A nor B"],
    [
      "abk,bc->ac",
      'position 2: index k is in A alone and not in D: sum over it first, reduce(a, "sum", { axis: 2 })',
    ],
    [
      "ab,kbc->ac",
      'position 3: index k is in B alone and not in D: sum over it first, reduce(b, "sum", { axis: 0 })',
    ],
  ])("%s is refused", (text, message) => {
    expect(() => readSpecification(text)).toThrow(message);
  });
});
