import { deepStrictEqual as same, ok, strictEqual as is } from "node:assert/strict";
import { highestOfEach, ticks } from "../src/charts/chart_geometry.ts";

Deno.test("ticks are round, begin at zero and reach the largest value", () => {
  same(ticks(177.6), [0, 50, 100, 150, 200]);
  same(ticks(1), [0, 0.2, 0.4, 0.6000000000000001, 0.8, 1]);
  same(ticks(0), [0, 1]);
  ok(ticks(987).at(-1)! >= 987);
});

Deno.test("ticks of counts are integers", () => {
  same(ticks(7, 3, true), [0, 5, 10]);
  same(ticks(2, 5, true), [0, 1, 2]);
  same(ticks(70, 3, true), [0, 25, 50, 75]);
});

Deno.test("with less room than steps the highest of each group is drawn", () => {
  same(highestOfEach([1, 9, 3, 4, 2], 3), [{ step: 1, of: 2 }, { step: 3, of: 2 }, { step: 4, of: 1 }]);
  is(highestOfEach([1, 2, 3], 300).length, 3);
});
