import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { ViewEntry } from "../src/api/types.ts";
import { comparedTable, readyAreas } from "../src/timeline/model/area_comparison.ts";

type Row = [name: string | null, category: string, calls: number, total_ns: number, self_ns: number];

const table = (...rows: Row[]) => ({
  data: Object.fromEntries(
    ["name", "category", "calls", "total_ns", "self_ns"].map((name, i) => [name, rows.map((row) => row[i]!)]),
  ),
});

const rowsOf = ({ data }: ReturnType<typeof comparedTable>) =>
  data.name!.map((name, i) => [name, data.delta_self_ns![i], data.base_self_ns![i], data.area_self_ns![i]]);

Deno.test("areas are compared by name and category, the largest difference of self time first", () => {
  const base = table(["a", "Kernel", 2, 20, 20], ["b", "Kernel", 1, 90, 90], ["a", "Operator", 1, 30, 5]);
  const area = table(["a", "Kernel", 3, 35, 35], ["b", "Kernel", 1, 60, 60], ["c", null as never, 1, 7, 7]);
  const compared = comparedTable([base], [area]);
  same(rowsOf(compared), [["b", -30, 90, 60], ["a", 15, 20, 35], ["c", 7, 0, 7], ["a", -5, 5, 0]]);
  same(compared.data.delta_calls, [0, 1, 1, -1]);
  same(compared.data.delta_total_ns, [-30, 15, 7, -30]);
  same(compared.data.category, ["Kernel", "Kernel", null, "Operator"]);
});

Deno.test("the workers of an area are added up, and steps are one row whatever their numbers", () => {
  const base = [table(["ProfilerStep#1", "Annotation", 1, 9, 9]), table(["ProfilerStep#1", "Annotation", 1, 8, 8])];
  const area = [table(["ProfilerStep#12", "Annotation", 1, 20, 20], ["ProfilerStep", "Annotation", 1, 1, 1])];
  same(rowsOf(comparedTable(base, area)), [["ProfilerStep#", 3, 17, 20], ["ProfilerStep", 1, 0, 1]]);
  same(rowsOf(comparedTable([], [])), []);
});

Deno.test("both sides are drawn in one scale, and a difference has a sign", () => {
  const entry = { weight: null, picture: null, key: ["name"], parameters: [] };
  const compared = comparedTable([table(["a", "Kernel", 1, 9, 900])], [table(["a", "Kernel", 2, 9, 2_500_000])]);
  const { columns } = readyAreas(compared, entry as unknown as ViewEntry);
  const of = (name: string) => columns.find((column) => column.name === name)!;
  same(["base_self_ns", "area_self_ns", "delta_self_ns"].map((name) => of(name).scale.unit), ["ms", "ms", "ms"]);
  is(of("delta_self_ns").shown!(0), "+2.5");
  is(of("delta_self_ns").title, "Δ self");
  same(["delta_self_ns", "delta_calls", "delta_total_ns"].map((name) => of(name).tone!(0)), [
    "grew unsure",
    "grew unsure",
    "",
  ]);
});
