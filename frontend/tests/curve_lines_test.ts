import { deepStrictEqual as same } from "node:assert/strict";
import type { Column, Table, ViewEntry } from "../src/api/types.ts";
import { prepareTable } from "../src/table/columns.ts";
import {
  describeMoment,
  extremes,
  isolatedRows,
  marksAround,
  marksWithin,
  meanOver,
  panels,
  partMeans,
  rowAt,
  span,
} from "../src/charts/curve_lines.ts";

const column = (name: string, kind: Column["kind"]): Column => ({ name, kind, doc: "What it is." });
const columns = [
  column("device", "text"),
  column("time_ns", "instant"),
  column("allocated_bytes", "bytes"),
  column("reserved_bytes", "bytes"),
  column("event", "text"),
  column("is_relative", "bool"),
];
const table: Table = {
  state: "ready",
  view: "levels",
  columns,
  data: {
    device: ["cuda:0", "cuda:0", "cuda:0", "cpu", "cpu"],
    time_ns: [0, 1000, 3000, 0, 3000],
    allocated_bytes: [0, 2048, 1024, 5, 5],
    reserved_bytes: [null, 4096, 4096, null, null],
    event: [null, "peak", null, null, null],
    is_relative: [true, true, true, false, false],
  },
};
const picture = {
  kind: "lines" as const,
  values: ["allocated_bytes", "reserved_bytes"],
  series: ["device"],
  marks: "event",
  is_stacked: false,
};
const entry = { key: [], weight: null, columns, picture };
const drawn = panels(
  table,
  prepareTable(table, entry as unknown as ViewEntry),
  picture,
);

Deno.test("each series is a panel, and lines without a value are left out", () => {
  same(drawn.map(({ title, lines }) => [title, ...lines.map((line) => line.title)]), [
    ["cuda:0", "Allocated", "Reserved"],
    ["cpu", "Allocated"],
  ]);
  same(drawn[0]!.marks, [null, "peak", null]);
  same(drawn.map(({ notes }) => notes.map(({ text }) => text)), [["Relative"], []]);
});

Deno.test("stacked lines lie on top of those behind them, the highest first, and keep their own values", () => {
  const stacked = { ...picture, is_stacked: true };
  const [panel] = panels(table, prepareTable(table, { ...entry, picture: stacked } as unknown as ViewEntry), stacked);
  same(panel!.lines.map(({ values }) => values), [[null, 4096, 4096], [0, 2048, 1024]]);
  same(panel!.lines.map(({ drawn }) => drawn), [[0, 6144, 5120], [0, 2048, 1024]]);
});

Deno.test("stacked lines that are always 0 are left out, and the others keep their colors", () => {
  const stacked = { ...picture, is_stacked: true };
  const zero = { ...table, data: { ...table.data, allocated_bytes: [0, 0, 0, 0, 0] } };
  const [panel] = panels(zero, prepareTable(zero, { ...entry, picture: stacked } as unknown as ViewEntry), stacked);
  same(panel!.lines.map(({ name, ink }) => [name, ink]), [["reserved_bytes", 1]]);
});

Deno.test("a value holds until the next row", () => {
  same([-1, 0, 999, 1000, 2999, 9000].map((time) => rowAt([0, 1000, 3000], time)), [-1, 0, 0, 1, 1, 2]);
  const [panel] = drawn;
  same(extremes(panel!, panel!.lines[0]!, 500, 900), [0, 0]);
  same(extremes(panel!, panel!.lines[0]!, 500, 3000), [0, 2048]);
  same(extremes(panel!, panel!.lines[1]!, 0, 999), null);
});

Deno.test("a mean is over time, of the range that is shown, and without what is missing, with the share that it is of", () => {
  const [panel] = drawn, [allocated, reserved] = panel!.lines;
  same(meanOver(panel!, allocated!, 500, 1500), [1024, 1]);
  same(meanOver(panel!, allocated!, 0, 3000), [2048 * 2 / 3, 1]);
  same(meanOver(panel!, reserved!, 0, 3000), [4096, 2 / 3]);
  same(meanOver(panel!, reserved!, 0, 999), null);
});

Deno.test("a line of many rows has a mean in each part of its time", () => {
  const means = { ...picture, values: ["allocated_bytes"], means: ["mean_bytes"] };
  const data = { ...table.data, mean_bytes: [0, 1500, 1024, 5, 5] };
  const withMeans = { ...entry, picture: means } as unknown as ViewEntry;
  const [panel] = panels({ ...table, data }, prepareTable({ ...table, data }, withMeans), means);
  same(partMeans(panel!, panel!.lines[0]!, 2), { times: [0, 1500, 3000], values: [500, 1500, 1500] });
  same(meanOver(panel!, panel!.lines[0]!, 0, 3000), [1000, 1]);
});

Deno.test("zero is on every axis, and a share's axis goes to the whole", () => {
  same(span(drawn[0]!.lines, "bytes"), [0, 4096]);
  same(span([{ drawn: [-5, 3] }], "bytes"), [-5, 3]);
  same(span([{ drawn: [0.2] }], "fraction"), [0, 1]);
  same(span([{ drawn: [0] }], "bytes"), [0, 1]);
});

Deno.test("axes have round numbers around values and within times", () => {
  same(marksAround(0, 12.4, 4), [0, 5, 10, 15]);
  same(marksAround(0, 2, 4, true), [0, 1, 2]);
  same(marksAround(-30, 70, 4), [-50, -25, 0, 25, 50, 75]);
  same(marksWithin(3.2, 9.1, 3), [4, 6, 8]);
  same(marksWithin(5, 5, 3), [5]);
  same(marksWithin(0.1, 9.9, 2), [2.5, 5, 7.5]);
  same(marksWithin(120, 390, 2), [200, 300]);
});

Deno.test("a time is described with exact numbers, and with the range within its pixel", () => {
  same(
    describeMoment(drawn[0]!, 1000, 900, 1100).replaceAll("\u202f", " "),
    [
      "cuda:0 at 1 µs (1000 ns)",
      "Allocated: 2 KiB (2048 bytes); 0 B to 2 KiB within this pixel",
      "Reserved: 4 KiB (4096 bytes)",
      "peak",
    ].join("\n"),
  );
  same(describeMoment(drawn[0]!, 2000, 1900, 2100).includes("peak"), false);
  same(describeMoment(drawn[0]!, 10, 0, 20).split("\n").at(-1), "Reserved: missing");
});

Deno.test("a value is drawn as a point where no line can show it", () => {
  same(isolatedRows([5]), [0]);
  same(isolatedRows([1, null, 5]), [2]);
  same(isolatedRows([1, 5]), []);
  same(isolatedRows([5, null]), []);
  same(isolatedRows([]), []);
});
