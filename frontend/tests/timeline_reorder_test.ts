import { deepStrictEqual as same } from "node:assert/strict";
import { applyOrder, dropAt, insertBefore, moveSibling } from "../src/timeline/model/reorder.ts";

const itself = (id: string) => id;
const natural = ["a", "b", "c", "d"];

Deno.test("reordered items come first, the others in their natural order", () => {
  same(applyOrder(natural, itself, []), natural);
  same(applyOrder(natural, itself, ["c", "x", "a"]), ["c", "a", "b", "d"]);
});

Deno.test("one is placed right before another, or last; before an unknown one, nothing changes", () => {
  same(insertBefore(natural, "d", "b"), ["a", "d", "b", "c"]);
  same(insertBefore(natural, "a", null), ["b", "c", "d", "a"]);
  same(insertBefore(natural, "a", "x"), natural);
});

Deno.test("an order names no more than it takes, and none once the order is natural again", () => {
  same(moveSibling(natural, [], "b", "a"), ["b"]);
  same(moveSibling(natural, ["b"], "a", "b"), []);
  same(moveSibling(natural, [], "a", null), ["b", "c", "d"]);
  same(moveSibling(natural, ["x", "y"], "d", "a"), ["x", "y", "d"]);
});

Deno.test("any order can be reached, and moves lead to it", () => {
  let order = ["x"];
  let expected = natural;
  for (const [id, before] of [["d", "b"], ["a", null], ["c", "d"], ["a", "c"], ["b", "a"], ["d", null]] as const) {
    order = moveSibling(natural, order, id, before);
    expected = insertBefore(expected, id, before);
    same(applyOrder(natural, itself, order), expected);
  }
  same(order[0], "x");
});

Deno.test("what is dropped goes before the first whose middle lies below", () => {
  const siblings = [{ id: "a", top: 0, bottom: 20 }, { id: "b", top: 20, bottom: 100 }];
  same(dropAt(siblings, 9), { before: "a", top: 0 });
  same(dropAt(siblings, 11), { before: "b", top: 20 });
  same(dropAt(siblings, 61), { before: null, top: 100 });
  same(dropAt([], 5), { before: null, top: 0 });
});
