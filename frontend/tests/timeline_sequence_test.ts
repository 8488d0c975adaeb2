import { deepStrictEqual as same } from "node:assert/strict";
import { dropAt, inOrder, placed, wishedBefore } from "../src/timeline/sequence.ts";

const itself = (id: string) => id;
const natural = ["a", "b", "c", "d"];

Deno.test("those that are wished come first, the others as they are by nature", () => {
  same(inOrder(natural, itself, []), natural);
  same(inOrder(natural, itself, ["c", "x", "a"]), ["c", "a", "b", "d"]);
});

Deno.test("one is placed right before another, or last; before nobody that is there, nothing changes", () => {
  same(placed(natural, "d", "b"), ["a", "d", "b", "c"]);
  same(placed(natural, "a", null), ["b", "c", "d", "a"]);
  same(placed(natural, "a", "x"), natural);
});

Deno.test("wishes name no more than it takes, and none once the order is natural again", () => {
  same(wishedBefore(natural, [], "b", "a"), ["b"]);
  same(wishedBefore(natural, ["b"], "a", "b"), []);
  same(wishedBefore(natural, [], "a", null), ["b", "c", "d"]);
  same(wishedBefore(natural, ["x", "y"], "d", "a"), ["x", "y", "d"]);
});

Deno.test("any order can be reached, and is what the wishes say", () => {
  let wished = ["x"];
  let wanted = natural;
  for (const [id, before] of [["d", "b"], ["a", null], ["c", "d"], ["a", "c"], ["b", "a"], ["d", null]] as const) {
    wished = wishedBefore(natural, wished, id, before);
    wanted = placed(wanted, id, before);
    same(inOrder(natural, itself, wished), wanted);
  }
  same(wished[0], "x");
});

Deno.test("what is dropped goes before the first whose middle lies below", () => {
  const siblings = [{ id: "a", top: 0, bottom: 20 }, { id: "b", top: 20, bottom: 100 }];
  same(dropAt(siblings, 9), { before: "a", top: 0 });
  same(dropAt(siblings, 11), { before: "b", top: 20 });
  same(dropAt(siblings, 61), { before: null, top: 100 });
  same(dropAt([], 5), { before: null, top: 0 });
});
