import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { depthFor, inPreorder, outermost, pathTo, treeOf, unfolded, withRelatives } from "../src/table/tree.ts";

//  0 ─ 1 ─ 3      2 ─ 5
//    └ 4
const PARENTS = [null, 0, null, 1, 0, 2];
const TREE = treeOf(PARENTS);
const ALL = Uint32Array.from(PARENTS, (_, row) => row);
const PREORDER = inPreorder(TREE, ALL);

Deno.test("a tree knows how deep each row lies and how many rows lie in it", () => {
  same([...TREE.level], [0, 1, 0, 2, 1, 1]);
  same([...TREE.size], [4, 2, 2, 1, 1, 1]);
});

Deno.test("rows around which there is none, and circles, are roots", () => {
  same([...treeOf([7, -3, "1", undefined, 4]).parent], [-1, -1, -1, -1, -1]);
  const circle = treeOf([1, 2, 0, 0]);
  is([...circle.parent].filter((row) => row === -1).length, 1);
  is(Math.max(...circle.size), 4);
});

Deno.test("what lies in a row follows it, siblings in the given order", () => {
  same([...PREORDER], [0, 1, 3, 4, 2, 5]);
  same([...inPreorder(TREE, Uint32Array.of(5, 4, 3, 2, 1, 0))], [2, 5, 0, 4, 1, 3]);
});

Deno.test("a folded row hides all that lies in it", () => {
  same([...unfolded(TREE, PREORDER, null, () => true)], [0, 1, 3, 4, 2, 5]);
  same([...unfolded(TREE, PREORDER, null, (row) => row === 0)], [0, 1, 4, 2]);
  same([...unfolded(TREE, PREORDER, null, () => false)], [0, 2]);
});

Deno.test("a filter keeps what is around its matches, and what lies in them", () => {
  const { included, around } = withRelatives(TREE, Uint32Array.of(1));
  same([...included], [1, 1, 0, 1, 0, 0]);
  same([...around], [1, 0, 0, 0, 0, 0]);
  same([...unfolded(TREE, PREORDER, included, (row) => around[row] === 1)], [0, 1]);
});

Deno.test("a tree is unfolded as far as it stays short", () => {
  is(depthFor(TREE, 1), 0);
  is(depthFor(TREE, 4), 0);
  is(depthFor(TREE, 5), 1);
  is(depthFor(TREE, 100), 2);
  is(depthFor(treeOf([]), 100), 0);
});

Deno.test("the path to a row begins outside", () => {
  same(pathTo(TREE, 3), [0, 1]);
  same(pathTo(TREE, 2), []);
});

Deno.test("of some rows the outermost are those in none of the others", () => {
  same([...outermost(TREE, Uint32Array.of(3, 1, 5))], [1, 5]);
  same([...outermost(TREE, ALL)], [0, 2]);
});
