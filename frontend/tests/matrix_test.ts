import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { colorRange, darkness, matrixOf, nameOf } from "../src/charts/matrix.ts";

const worker = ["rank0", "rank0", "rank1", "rank1"];
const step = ["2", "10", "2", "10"];
const own = [5, 7, 6, null];
const all = Uint32Array.of(0, 1, 2, 3);
const ROOM = { lines: 100, columns: 100 };

Deno.test("rows are cells by two of their columns; what is missing is no cell", () => {
  const matrix = matrixOf(all, [worker, step, own], ROOM);
  same(matrix.lines.map(nameOf), ["rank0", "rank1"]);
  same(matrix.columns.map(nameOf), ["2", "10"]);
  same([...matrix.rows], [0, 1, 2, -1]);
});

Deno.test("the order of the rows in the table doesn't matter, numbers stand by their size", () => {
  const matrix = matrixOf(Uint32Array.of(3, 1, 0), [worker, [10, 9, 2, 9], [1, 2, 3, 4]], ROOM);
  same(matrix.columns.map(nameOf), ["9", "10"]);
  same([...matrix.rows], [1, 0, 3, -1]);
});

Deno.test("where there is no room for each line, neighbors share one, which shows the largest", () => {
  const many = Array.from({ length: 5 }, (_, i) => `rank${i}`);
  const matrix = matrixOf(Uint32Array.of(0, 1, 2, 3, 4), [many, Array(5).fill("1"), [1, 9, 3, 4, 5]], {
    lines: 3,
    columns: 9,
  });
  same(matrix.lines.map(nameOf), ["rank0 … rank1", "rank2 … rank3", "rank4"]);
  same([...matrix.rows], [1, 3, 4]);
});

Deno.test("values that differ by little stay pale", () => {
  const range = colorRange([98, 100, null]);
  same(range, { low: 80, high: 100, isWidened: true });
  is(darkness(100, range), 1);
  is(darkness(80, range), 0);
  is(darkness(90, range).toFixed(3), (0.5 ** 0.6).toFixed(3));
  same(colorRange([0, 10]), { low: 0, high: 10, isWidened: false });
  same(colorRange([null]), { low: 0, high: 0, isWidened: false });
  is(darkness(5, { low: 5, high: 5 }), 0);
});
