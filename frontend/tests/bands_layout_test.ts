import { deepStrictEqual as assertEquals } from "node:assert/strict";
import { highestInParts, stackBands } from "../src/charts/bands_layout.ts";

const band = (row: number, begin: number, end: number, height: number) => ({ row, begin, end, height });

Deno.test("a band falls when one below it ends", () => {
  assertEquals(stackBands([band(0, 0, 5, 10), band(1, 2, 9, 4)]), [
    { row: 0, from: 0, to: 5, low: 0, high: 10 },
    { row: 1, from: 2, to: 5, low: 10, high: 14 },
    { row: 1, from: 5, to: 9, low: 0, high: 4 },
  ]);
});

Deno.test("what ends where another begins makes room for it", () => {
  assertEquals(stackBands([band(0, 0, 5, 10), band(1, 5, 7, 3)]), [
    { row: 0, from: 0, to: 5, low: 0, high: 10 },
    { row: 1, from: 5, to: 7, low: 0, high: 3 },
  ]);
});

Deno.test("bands without a length have no piece, and move none", () => {
  assertEquals(stackBands([band(0, 0, 4, 1), band(1, 2, 2, 9), band(2, 2, 4, 1)]).map(({ row, low }) => [row, low]), [
    [0, 0],
    [2, 1],
  ]);
});

Deno.test("all bands together are as high as those that are open", () => {
  const bands = Array.from({ length: 60 }, (_, row) => band(row, row * 3, row * 3 + 1 + (row * 37) % 50, 1 + row % 7));
  const pieces = stackBands(bands);
  for (let time = 0.5; time < 240; time++) {
    const at = pieces.filter(({ from, to }) => from <= time && time < to).sort((a, b) => a.low - b.low);
    const open = bands.filter(({ begin, end }) => begin <= time && time < end);
    assertEquals(at.length, open.length);
    at.forEach(({ low }, i) => assertEquals(low, i ? at[i - 1]!.high : 0));
    assertEquals(at.at(-1)?.high ?? 0, open.reduce((sum, { height }) => sum + height, 0));
  }
});

Deno.test("a level is drawn as high as it gets in each part of the time", () => {
  const times = [0, 10, 11, 40], values = [1, 9, 2, 5];
  assertEquals(highestInParts(times, values, 0, 40, 4), [1, 9, 2, 2]);
  assertEquals(highestInParts(times, values, 0, 44, 4), [9, 2, 2, 5]);
  assertEquals(highestInParts(times, values, 12, 20, 2), [2, 2]);
  assertEquals(highestInParts(times, values, -10, 10, 2), [0, 1]);
});
