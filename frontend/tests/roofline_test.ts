import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { Table } from "../src/api/types.ts";
import { overlap, piecesOf, placeLabels, type Rectangle } from "../src/charts/label_placement.ts";
import { decades, logScale, marksOf, roofsOf, rowsLeftOut } from "../src/charts/roofline_marks.ts";

const PICTURE = {
  kind: "roofline",
  intensity: "intensity",
  rate: "rate",
  time: "time",
  peak_rate: "peak",
  peak_bandwidth: "bandwidth",
  number_format: "dtype",
  byte_rate: "byteRate",
  reason: "reason",
  gap: "gap",
} as const;
const DATA = {
  intensity: [10, 1000, null, 5, null],
  rate: [50, 400, null, 0, null],
  time: [7, 3, 90, 1, 9],
  peak: [800, 800, null, null, null],
  bandwidth: [10, 10, null, null, 10],
  dtype: ["bf16", "bf16", null, "int8", null],
  byteRate: [5, 0.4, null, null, 2],
};
const TABLE = { state: "ready", view: "", columns: [], data: DATA } as Table;

Deno.test("rows with known work are points, and know their share of the roof", () => {
  const marks = marksOf(PICTURE, TABLE, Uint32Array.of(0, 1, 2, 3));
  same(marks.map(({ row, share }) => [row, share]), [[0, 0.5], [1, 0.5]]);
  same(roofsOf(marks).map(({ format, rate, bandwidth }) => [format, rate, bandwidth]), [["bf16", 800, 10]]);
});

Deno.test("work without FLOPs is drawn only where no row has any, by its bytes under a level roof", () => {
  const both = marksOf(PICTURE, TABLE, Uint32Array.of(0, 1, 4));
  same(both.map(({ row, kind }) => [row, kind]), [[0, "flop_rate"], [1, "flop_rate"]]);
  const alone = marksOf(PICTURE, TABLE, Uint32Array.of(4));
  same(alone.map(({ kind, x, rate, share }) => [kind, x, rate, share]), [["byte_rate", 9, 2, 0.2]]);
  same(roofsOf(alone), [{ format: "memory", rate: 10, bandwidth: Infinity, time: 9 }]);
});

Deno.test("nothing is said of rows that took no time", () => {
  same(rowsLeftOut([2, 0, 1, 3], new Set([0, 1]), (row) => [7, 3, 90, 0][row]!), [2]);
});

Deno.test("a logarithmic scale has powers of ten as marks, not too many", () => {
  const scale = logScale([1.5, 30000], 0, 100);
  same(decades(scale), [1, 10, 100, 1000, 10000]);
  is((scale.at(10) - scale.at(1)).toFixed(6), (scale.at(100) - scale.at(10)).toFixed(6));
  is(decades(logScale([1e-9, 1e15], 0, 100)).length <= 9, true);
  same([1.5, 60, 2.6].map((value) => decades(logScale([value], 0, 100))), [[1, 2], [50, 100], [2, 5]]);
  same(decades(logScale([2.4, 2.5], 0, 100)), [1.5, 2, 3]);
});

const INSIDE = { left: 0, top: 0, width: 600, height: 300 };

Deno.test("no label lies over another, over a point, over a line, or outside", () => {
  let state = 7;
  const random = (below: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  const lines = piecesOf([0, 250, 600, 100]);
  let count = 0;
  for (let round = 0; round < 500; round++) {
    const points = Array.from({ length: 6 }, () => ({ x: random(600), y: random(300), radius: 3 + random(25) }));
    const sizes = points.slice(1).map(() => ({ width: 60 + random(140), height: 30 }));
    const circles = points.map(({ x, y, radius: r }) => ({ left: x - r, top: y - r, width: 2 * r, height: 2 * r }));
    const occupied = [...circles, ...lines, { left: 400, top: 0, width: 200, height: 20 }];
    const placed = placeLabels(sizes, points, INSIDE, occupied).filter((at) => at !== null);
    placed.forEach((at, i) => {
      is([...placed.slice(0, i), ...occupied].some((other) => overlap(at, other)), false);
      is(at.left >= 0 && at.top >= 0 && at.left + at.width <= 600 && at.top + at.height <= 300, true);
    });
    count += placed.length;
  }
  is(count > 1000, true);
});

Deno.test("a label goes to another side of its point where there is no room, or is left out", () => {
  const largest = { x: 300, y: 150, radius: 26 }, size = { width: 200, height: 30 };
  const at = (...occupied: Rectangle[]) => placeLabels([size], [largest], INSIDE, occupied)[0]!;
  const right = { left: 331, top: 120, width: 200, height: 60 }, all = { left: 0, top: 0, width: 600, height: 300 };
  is(at().left, 330);
  same([at(right).left, at(right).top], [70, 135]);
  is(at(all), null);
});
