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

Deno.test("rows of one height lie by their number, below the opened one by its detail", () => {
  const layout = new Layout(4, null, 1, 100);
  same([0, 1, 2, 4].map((place) => layout.top(place)), [0, ROW, 2 * ROW + 100, 4 * ROW + 100]);
  same(layout.height(2), ROW);
  same([0, ROW, 2 * ROW + 50, 2 * ROW + 100].map((y) => layout.at(y)), [0, 1, 1, 2]);
});

Deno.test("rows of their own heights lie below each other, and each height leads back to its row", () => {
  const heights = [26, 62, 26, 44];
  for (const opened of [-1, 0, 2]) {
    const layout = new Layout(4, heights, opened, 30);
    let top = 0;
    for (const [place, height] of heights.entries()) {
      same([layout.top(place), layout.height(place)], [top, height]);
      same([layout.at(top), layout.at(top + height - 1)], [place, place]);
      top += height;
      if (place === opened) {
        same(layout.at(top + 15), place);
        top += 30;
      }
    }
    same(layout.top(4), top);
  }
});
