import { deepStrictEqual as same } from "node:assert/strict";
import { heightOf, Layout, LINE, linesOf, ROW } from "../src/table/row_layout.ts";

const letters = (text: string) => 10 * text.length;

Deno.test("lines break between words, and within a word that is wider than the room", () => {
  same(linesOf("", 100, letters), 1);
  same(linesOf("ab cd", 50, letters), 1);
  same(linesOf("ab cde", 50, letters), 2);
  same(linesOf("a b c d e", 30, letters), 3);
  same(linesOf("abcdefghij", 30, letters), 4);
  same(linesOf("ab abcdefg h", 30, letters), 4); // ab | abc | def | g h
  same(linesOf("no room", 0, letters), 2);
});

Deno.test("a row of one line is as high as any, and each further line makes it higher", () => {
  same(heightOf(1), ROW);
  same(heightOf(3) - heightOf(2), LINE);
});

Deno.test("rows of one height lie by their number", () => {
  const layout = new Layout(4, null);
  same([0, 1, 2, 4].map((place) => layout.top(place)), [0, ROW, 2 * ROW, 4 * ROW]);
  same(layout.height(2), ROW);
  same([0, ROW, 2 * ROW - 1].map((y) => layout.at(y)), [0, 1, 1]);
});

Deno.test("rows of their own heights lie below each other, and each height leads back to its row", () => {
  const heights = [26, 62, 26, 44];
  const layout = new Layout(4, heights);
  let top = 0;
  for (const [place, height] of heights.entries()) {
    same([layout.top(place), layout.height(place)], [top, height]);
    same([layout.at(top), layout.at(top + height - 1)], [place, place]);
    top += height;
  }
  same(layout.top(4), top);
});
