import { deepStrictEqual as same } from "node:assert/strict";
import type { Table } from "../src/api/types.ts";
import { sidesOf } from "../src/timeline/model/area_sides.ts";

type Row = [name: string, self_ns: number, max_ns: number, is_device: boolean, is_covering: boolean];

const NAMES = ["name", "self_ns", "max_ns", "is_device", "is_covering"];

const table = (...rows: Row[]): Table => ({
  state: "ready",
  view: "area",
  columns: [...NAMES, "category", "calls"].map((name) => ({ name, kind: "text", doc: "" })),
  data: {
    ...Object.fromEntries(NAMES.map((name, i) => [name, rows.map((row) => row[i]!)])),
    category: rows.map(() => null),
    calls: rows.map(() => 2),
  },
});

Deno.test("what covers the area is apart, the outermost first, and so are streams and threads", () => {
  const { device, host } = sidesOf(table(
    ["gemm", 50, 50, true, false],
    ["inner", 20, 30, false, true],
    ["add", 10, 10, false, false],
    ["outer", 5, 90, false, true],
  ));
  same(device!.rows.data, { name: ["gemm"], self_ns: [50], max_ns: [50], calls: [2] });
  same(device!.covering, { names: [], count: 0, own_ns: 0 });
  same(host!.rows.data.name, ["add"]);
  same(host!.covering, { names: ["outer", "inner"], count: 4, own_ns: 25 });
});

Deno.test("a side without slices is left out", () => {
  same(Object.keys(sidesOf(table(["gemm", 50, 50, true, false]))), ["device"]);
  same(sidesOf(table()), {});
});
