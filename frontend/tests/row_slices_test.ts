import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { RowTime, Slices, ViewEntry } from "../src/api/types.ts";
import type { Value } from "../src/format/numbers.ts";
import { pageView } from "../src/api/pictures.ts";
import { slicesOfRow } from "../src/api/row_slices.ts";

const SLICES: Slices = { are_highlighted: true, except_kind: null, category: null, panel: null };
const view = (fields: Partial<ViewEntry>): ViewEntry => ({
  ...pageView("v", { title: "V", question: "", section: "", figure: null }, ""),
  ...fields,
});
const keyed = (key: string[], fields: Partial<Slices> = {}) => view({ key, slices: { ...SLICES, ...fields } });
const timed = (begin: string, fields: Partial<RowTime> = {}) =>
  view({ time: { begin, length: null, end: null, worker: null, ...fields } });
const of = (entry: ViewEntry, row: Record<string, Value>, views: ViewEntry[] = []) =>
  slicesOfRow(entry, (column) => row[column] ?? null, views);

Deno.test("a row finds its slices by its key, also where a part of that is missing", () => {
  same(of(keyed(["name"]), { name: "aten::mm", calls: 3 })?.find, { view: "v", name: "aten::mm" });
  same(of(keyed(["name", "op"]), { name: "gemm" })?.find, { view: "v", name: "gemm", op: null });
  is(of(view({ key: ["category"] }), { category: "Kernel" }), null);
  const mm = () => "aten::mm", ofSteps = { ...keyed(["name"]), takes_steps: true };
  same(slicesOfRow(ofSteps, mm, [], "decode")?.find, { view: "v", phase: "decode", name: "aten::mm" });
  same(slicesOfRow(keyed(["name"]), mm, [], "decode")?.find, { view: "v", name: "aten::mm" });
  is(of(keyed(["step"], { are_highlighted: false }), { step: "5" }), null);
});

Deno.test("a row of the rest finds nothing: its slices have no key", () => {
  const entry = keyed(["path"], { except_kind: "rest" });
  same(of(entry, { path: "main", kind: "function" })?.find, { view: "v", path: "main" });
  is(of(entry, { path: "main", kind: "rest" }), null);
  same(of(keyed(["path"]), { path: "main" })?.find, { view: "v", path: "main" });
});

Deno.test("rows with times are about these times", () => {
  same(of(timed("start_ns", { length: "dur_ns" }), { start_ns: 10, dur_ns: 5 })?.range, { from: 10, to: 15 });
  is(of(timed("start_ns", { length: "dur_ns" }), { start_ns: 10 }), null);
  const lifetime = timed("allocated_ns", { end: "released_ns" });
  same(of(lifetime, { allocated_ns: 10, released_ns: 90 })?.range, { from: 10, to: 90 });
  same(of(lifetime, { allocated_ns: 100_000 })?.range, { from: 80_000, to: 120_000 });
  same(of(timed("at_ns"), { at_ns: 100_000 }), { find: null, range: { from: 80_000, to: 120_000 } });
});

Deno.test("rows of the critical path lead to it, across ranks to that across ranks", () => {
  const entry = { ...timed("start_ns"), shows_path: true };
  is(of(entry, { start_ns: 10 })?.critical, "1");
  is(of({ ...entry, scope: "span" }, { start_ns: 10 })?.critical, "ranks");
  is(of({ ...entry, time: null }, { start_ns: 10 }), null);
});

Deno.test("a row with a worker leads to that worker's recording", () => {
  const entry = timed("start_ns", { length: "total_ns", worker: "worker" });
  same(of(entry, { worker: "rank3", start_ns: 100, total_ns: 50 }), {
    find: null,
    range: { from: 100, to: 150 },
    worker: "rank3",
  });
});

Deno.test("advice leads to the slices of its filter, to its panel, or to those of its category", () => {
  const advice = view({
    reference: { view: "view", filter: "filter", rule: "rule", categories: { data_loading: "DataLoader" } },
  });
  const views = [
    { ...keyed(["name"], { category: "Kernel" }), id: "kernels" },
    { ...keyed(["start_ns"], { panel: "gaps" }), id: "gaps" },
  ];
  const slicesFor = (rule: string, view: string, filter: string | null) => of(advice, { rule, view, filter }, views);
  same(slicesFor("mixed_precision", "kernels", "re:gemm|conv")?.find, { text: "re:gemm|conv", category: "Kernel" });
  same(slicesFor("data_loading", "gaps", "data loading"), { find: null, range: null, gaps: "data loading" });
  same(slicesFor("data_loading", "steps", null)?.find, { category: "DataLoader" });
  is(slicesFor("memory", "kernels", null), null);
});
