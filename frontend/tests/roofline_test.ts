import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { Table } from "../src/api/types.ts";
import { overlap, placeLabels, uncovered } from "../src/charts/label_placement.ts";
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

Deno.test("no label lies over another, over a point, or outside", () => {
  let state = 7;
  const random = (below: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  const inside = { left: 0, top: 0, width: 600, height: 300 };
  for (let round = 0; round < 500; round++) {
    const points = Array.from({ length: 6 }, () => ({ x: random(600), y: random(300), radius: 3 + random(25) }));
    const sizes = points.map(() => ({ width: 60 + random(140), height: 30 }));
    const occupied = [{ left: 400, top: 0, width: 200, height: 20 }];
    const placed = placeLabels(points, sizes, inside, occupied).filter((at) => at !== null);
    placed.forEach((at, i) => {
      const circles = points.map(({ x, y, radius: r }) => ({ left: x - r, top: y - r, width: 2 * r, height: 2 * r }));
      is([...placed.slice(0, i), ...occupied, ...circles].some((other) => overlap(at, other)), false);
      is(at.left >= 0 && at.top >= 0 && at.left + at.width <= 600 && at.top + at.height <= 300, true);
    });
  }
});

Deno.test("dots leave room for the label of a large point, and large points don't", () => {
  const largest = { x: 300, y: 150, radius: 26 }, size = { width: 200, height: 30 };
  const inside = { left: 0, top: 0, width: 600, height: 300 };
  const around = (radius: number) =>
    [[380, 150], [220, 150], [300, 200], [300, 100]].map(([x, y]) => ({ x: x!, y: y!, radius }));
  is(placeLabels([largest], [size], inside, uncovered(around(4)))[0]!.left, 330);
  is(placeLabels([largest], [size], inside, uncovered(around(12)))[0], null);
});
