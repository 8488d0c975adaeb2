import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { Comparison, ViewEntry } from "../src/api/types.ts";
import { formatGrowth, formatSigned, readyComparison, rowsBeyondNoise } from "../src/table/comparison_columns.ts";

const KINDS = { base: "duration", new: "duration", delta: "duration", noise: "duration" } as const;
const TABLE = {
  state: "ready",
  view: "kernels",
  compared: ["total_ns"],
  basis: { words: "Per step." },
  key: ["name"],
  weight: "delta_total_ns",
  parent: null,
  columns: [
    { name: "name", kind: "text", doc: "Name." },
    { name: "only_in", kind: "text", doc: "Side." },
    ...Object.entries(KINDS).map(([part, kind]) => ({ name: `${part}_total_ns`, kind, doc: part })),
    { name: "total_ns_ratio", kind: "number", doc: "Ratio." },
    { name: "total_ns_verdict", kind: "text", doc: "Verdict." },
  ],
  data: {
    name: ["a", "b", "c", "d"],
    only_in: [null, null, "new", null],
    base_total_ns: [2000, 1_000_000, null, 10],
    new_total_ns: [1000, 1_000_040, 500, 10],
    delta_total_ns: [-1000, 40, 500, 0],
    noise_total_ns: [10, 90, null, 0],
    total_ns_ratio: [0.5, 1.00004, null, 1],
    total_ns_verdict: ["beyond noise", "not certain", "unknown", "same"],
  },
} as unknown as Comparison;
const ENTRY = {
  columns: [],
  key: ["name"],
  weight: "total_ns",
  picture: { kind: "bars", lengths: ["total_ns"] },
} as unknown as ViewEntry;

const ready = () => readyComparison(TABLE, ENTRY);
const column = (name: string) => ready().columns.find((one) => one.name === name)!;

Deno.test("what is compared with each other has one scale", () => {
  const scales = ["base_total_ns", "new_total_ns", "delta_total_ns", "noise_total_ns"].map((name) =>
    column(name).scale
  );
  same(scales.map(({ unit }) => unit), ["ms", "ms", "ms", "ms"]);
});

Deno.test("a difference has its sign, and growth is in percent", () => {
  const scale = { unit: "µs", divisor: 1000, decimals: 1 };
  same([1500, -1500, 0, null].map((value) => formatSigned(value, scale)), ["+1.5", "−1.5", "0", "–"]);
  same([3, -3].map((value) => formatSigned(value, scale)), ["≈0", "≈0"]);
  same([1.5, 0.5, 1, null].map(formatGrowth), ["+50 %", "−50 %", "0 %", "–"]);
  same([2.5423, 1.0766, 12.34, 243.7].map(formatGrowth), ["+154 %", "+7.7 %", "×12.3", "×244"]);
});

Deno.test("verdicts are in plain words", () => {
  const { shown } = column("total_ns_verdict");
  same([0, 1, 2, 3].map((row) => shown!(row)), ["beyond noise", "not certain", "unknown", "same"]);
});

Deno.test("the color shows the direction in addition to the text, and is pale for noise", () => {
  const { tone } = column("delta_total_ns");
  same([0, 1, 2, 3].map((row) => tone!(row)), ["shrank real", "grew noise", "grew unsure", "noise"]);
});

Deno.test("headings name the side and the column", () => {
  same(ready().columns.map(({ title }) => title), [
    "Name",
    "Only in",
    "Base total",
    "New total",
    "Δ total",
    "± noise",
    "Change",
    "Verdict",
  ]);
});

Deno.test("rows that are noise or the same can be left out", () => {
  same([...rowsBeyondNoise(Uint32Array.of(0, 1, 2, 3), TABLE)], [0, 2]);
});

Deno.test("sums are shown of parts of a whole alone", () => {
  is(column("delta_total_ns").isSummed, true);
  is(column("noise_total_ns").isSummed, false);
  is(readyComparison({ ...TABLE }, { ...ENTRY, picture: null }).columns.some(({ isSummed }) => isSummed), false);
});
