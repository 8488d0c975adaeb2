import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { Value } from "../src/format.ts";
import { slicesOfAdvice, slicesOfRow } from "../src/row_slices.ts";

const of = (view: string, row: Record<string, Value>) => slicesOfRow(view, (column) => row[column] ?? null);

Deno.test("a row finds its slices by its key, also where a part of that is missing", () => {
  same(of("operators", { name: "aten::mm", calls: 3 })?.find, { view: "operators", name: "aten::mm" });
  same(of("operators_by_shape", { name: "aten::mm", input_shapes: null })?.find, {
    view: "operators_by_shape",
    name: "aten::mm",
    input_shapes: null,
  });
  is(of("overview", { category: "Kernel" }), null);
});

Deno.test("a row of the rest finds nothing: its slices are told by no key", () => {
  const key = { function: "main", path: "main" };
  same(of("python_calls", { ...key, kind: "function" })?.find, { view: "python_calls", ...key });
  is(of("python_calls", { ...key, kind: "rest" }), null);
});

Deno.test("rows with times are about these times", () => {
  same(of("gaps", { start_ns: 10, dur_ns: 5 })?.range, { from: 10, to: 15 });
  same(of("steps", { start_ns: 10, total_ns: 7 })?.range, { from: 10, to: 17 });
  same(of("memory_events", { device: "GPU 0", first_byte: 7, allocated_ns: 10, released_ns: 90 }), {
    find: { view: "memory_events", device: "GPU 0", first_byte: 7 },
    range: { from: 10, to: 90 },
  });
  same(of("queue_length", { at_ns: 100_000 })?.range, { from: 80_000, to: 120_000 });
});

Deno.test("rows of the critical path lead to it", () => {
  same(of("critical_path_stretches", { step: "7", start_ns: 10, dur_ns: 5 }), {
    find: { view: "critical_path_stretches", step: "7", start_ns: 10 },
    range: { from: 10, to: 15 },
    critical: "1",
  });
});

Deno.test("advice leads to the slices of its filter, to its gaps, or to those of its kind", () => {
  const of = (rule: string, view: string, filter: string) => slicesOfAdvice(rule, view, filter);
  same(of("mixed_precision", "kernels_by_op", "re:gemm|conv")?.find, { text: "re:gemm|conv", category: "Kernel" });
  same(of("data_loading", "gaps", "data loading"), { find: null, range: null, gaps: "data loading" });
  same(of("communication", "exposed_time", "")?.find, { category: "Communication" });
  is(of("memory", "memory_peak", ""), null);
  const row: Record<string, Value> = { rule: "data_loading", view: "steps", filter: null };
  same(slicesOfRow("advice", (column) => row[column] ?? null)?.find, { category: "DataLoader" });
});

Deno.test("a row that says whose it is leads to that recording, unless its times are on another one's clock", () => {
  const row = { worker: "rank3", step: "2", start_ns: 100, total_ns: 50 };
  same(of("rank_steps", row), { find: null, range: { from: 100, to: 150 }, worker: "rank3" });
  is(of("pace", row), null);
  same(of("path_across_ranks_stretches", { worker: "rank3", start_ns: 100, dur_ns: 5, stretch_ns: 60 }), {
    find: null,
    range: { from: 100, to: 160 },
    critical: "ranks",
    worker: "rank3",
  });
  is(of("path_by_rank", { worker: "rank3", step: "2", start_ns: 100, total_ns: 5 })?.critical, "ranks");
  is(of("rank_steps", row)?.critical, undefined);
});
