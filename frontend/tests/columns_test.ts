import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { Column, Table, ViewEntry } from "../src/api/types.ts";
import type { Value } from "../src/format/numbers.ts";
import { addKernelLabels } from "../src/format/readable_names.ts";
import { matrixUnits, TENSOR_CORES } from "../src/format/vendor_words.ts";
import { csv, leadingNames, prepareTable, sortedTexts, tsv, weightAfter } from "../src/table/columns.ts";
import CASES from "./formulas.json" with { type: "json" };

const TABLE: Table = {
  state: "ready",
  view: "kernels",
  columns: [
    { name: "name", kind: "text", doc: "Name." },
    { name: "total_ns", kind: "duration", doc: "Sum." },
    { name: "gone_ns", kind: "duration", doc: "Nothing." },
  ],
  data: { name: ["gemm<float, 4>", "=cmd()"], total_ns: [30, null], gone_ns: [null, null] },
};
const ENTRY = {
  key: ["name"],
  weight: "total_ns",
  picture: { kind: "bars", lengths: ["total_ns"] },
} as unknown as ViewEntry;

Deno.test("empty columns are set aside, and amounts of one row have no bars", () => {
  const { columns, emptyColumns, nameOf } = prepareTable(TABLE, ENTRY);
  same(columns.map(({ name }) => name), ["name", "total_ns"]);
  same(emptyColumns.map(({ name }) => name), ["gone_ns"]);
  is(columns[1]!.bar, null);
  is(columns[1]!.isSummed, true);
  is(nameOf(0), "gemm<float, 4>");
});

Deno.test("labels of kernels are shown and searched, also if they arrive later", () => {
  const table = { ...TABLE };
  is(prepareTable(table, ENTRY).columns[0]!.shown, undefined);
  addKernelLabels({ "gemm<float, 4>": "GEMM fp32" });
  const { columns, nameOf, lower } = prepareTable(table, ENTRY);
  is(columns[0]!.shown!(0), "GEMM fp32");
  is(columns[0]!.values[0], "gemm<float, 4>");
  is(nameOf(0), "GEMM fp32");
  same(["gemm<float", "gemm fp32"].map((word) => lower[0]!.includes(word)), [true, true]);
});

Deno.test("parts of bars have one name in the picture and in the table", () => {
  const table = { ...TABLE, data: { ...TABLE.data, name: ["gemm", "idle: queued"] } };
  const shown = table.columns.map((column) => column.name === "name" ? { ...column, shown_as: "time part" } : column);
  const { columns, lower } = prepareTable({ ...table, columns: shown } as typeof table, ENTRY);
  same([0, 1].map(columns[0]!.shown!), ["Matmuls", "Idle: work queued"]);
  same(["gemm", "matmuls"].map((word) => lower[0]!.includes(word)), [true, true]);
});

Deno.test("operators have the names and the shapes of their inputs, and nothing else of their keys", () => {
  const texts = ["operator", "input_shapes", "input_types", "input_values"];
  const table: Table = {
    state: "ready",
    view: "kernel_efficiency",
    columns: texts.map((name) => ({
      name,
      kind: "text",
      doc: "A part of the key.",
      ...(name === "input_shapes" && { shown_as: "shapes" as const }),
    })),
    data: {
      operator: ["aten::mm", "aten::mm", "aten::_fused_adamw_", "aten::item"],
      input_shapes: ["[[8, 4], [4, 2], []]", "[[8, 4], [4, 2], []]", "[[], [], []]", null],
      input_types: ['["float"]', '["c10::BFloat16"]', '["TensorList", ""]', '["float"]'],
      input_values: ['["", ""]', '["","",""]', "[]", '[""]'],
    },
  };
  const picture = { kind: "roofline" } as unknown as ViewEntry["picture"];
  const { nameOf, columns, emptyColumns } = prepareTable(table, { ...ENTRY, key: texts, picture });
  const product = "aten::mm · [[8, 4], [4, 2]]";
  same([0, 1, 2, 3].map(nameOf), [product, product, "aten::_fused_adamw_", "aten::item"]);
  same(emptyColumns.map(({ name }) => name), ["input_values"]);
  same(columns.at(-1)!.values, table.data.input_types);
});

Deno.test("rows that only a number identifies are named by it", () => {
  const table: Table = {
    state: "ready",
    view: "iterations",
    columns: [{ name: "iteration", kind: "id", doc: "Number." }, TABLE.columns[1]!],
    data: { iteration: [7, 8], total_ns: [1, 2] },
  };
  is(prepareTable(table, { ...ENTRY, key: ["iteration"] }).nameOf(1), "8");
});

Deno.test("rows whose key is a hash are named by what they are about", () => {
  const columns = ["cause", "host", "culprit"].map((name) => ({
    ...{ name, kind: "text" as const, doc: "Text." },
    shown_as: name === "culprit" ? "hash" as const : "name" as const,
  }));
  const table: Table = {
    state: "ready",
    view: "idle_culprits",
    columns,
    data: {
      cause: ["host late", "host late", "launch latency"],
      host: ["mm", "add", null],
      culprit: ["d2", "a7", "5f"],
    },
  };
  const { nameOf } = prepareTable(table, { ...ENTRY, key: ["device", "culprit"] });
  same([0, 1, 2].map(nameOf), ["host late · mm", "host late · add", "launch latency"]);
});

Deno.test("files have base units, quotes where needed, and no formulas", () => {
  is(
    csv(TABLE.columns, TABLE.data, Uint32Array.of(0, 1)),
    'name,total_ns,gone_ns\r\n"gemm<float, 4>",30,\r\n\'=cmd(),,\r\n',
  );
  is(tsv(TABLE.columns, TABLE.data, Uint32Array.of(0)), "name\ttotal_ns\tgone_ns\ngemm<float, 4>\t30\t");
});

Deno.test("texts that a spreadsheet might run are inert, as the server makes them", () => {
  const columns = TABLE.columns.slice(0, 1);
  for (const [text, expected] of CASES) {
    const quoted = /[",\r\n]/.test(expected!) ? `"${expected!.replaceAll('"', '""')}"` : expected;
    is(csv(columns, { name: [text!] }, Uint32Array.of(0)), `name\r\n${quoted}\r\n`);
  }
});

Deno.test("a full bar is the largest value, and where a row of a tree stands is no column", () => {
  const table: Table = {
    state: "ready",
    view: "modules",
    columns: [
      { name: "name", kind: "text", doc: "Name." },
      { name: "total_ns", kind: "duration", doc: "Sum." },
      { name: "path", kind: "text", doc: "Path." },
      { name: "parent_row", kind: "id", doc: "Row." },
    ],
    data: {
      name: ["Net", "Linear", "Loss"],
      total_ns: [30, 20, 10],
      path: ["Net", "Net / Linear", "Loss"],
      parent_row: [null, 0, null],
    },
  };
  const entry = {
    key: ["path"],
    weight: "total_ns",
    picture: { kind: "tree", parent: "parent_row", widths: [] },
    parameters: [],
  };
  const { columns, emptyColumns, nameOf, tree } = prepareTable(table, entry as unknown as ViewEntry);
  same(columns.map(({ name }) => name), ["name", "total_ns"]);
  same(emptyColumns, []);
  is(columns[1]!.bar!.of, 30);
  is(nameOf(1), "Linear");
  same([...tree!.parent], [-1, 0, -1]);
});

Deno.test("rows are named by as much of their key as makes them unique, shapes without empty arguments", () => {
  const table: Table = {
    state: "ready",
    view: "operator_efficiency",
    columns: ["name", "input_shapes", "input_types"].map((name) => ({
      ...{ name, kind: "text", doc: name },
      ...(name === "input_shapes" && { shown_as: "shapes" }),
    })),
    data: {
      name: ["aten::mm", "aten::mm"],
      input_shapes: ["[[2, 3], [3, 4], [], []]", "[[8, 3], [3, 4]]"],
      input_types: ['["float", "float"]', '["float", "float"]'],
    },
  };
  const entry = { key: ["name", "input_shapes", "input_types"], weight: null, picture: null };
  const { nameOf } = prepareTable(table, entry as unknown as ViewEntry);
  same([0, 1].map(nameOf), ["aten::mm · [[2, 3], [3, 4]]", "aten::mm · [[8, 3], [3, 4]]"]);
});

Deno.test("columns of one title say of what they are, and only weights have bars", () => {
  const table: Table = {
    state: "ready",
    view: "operators",
    columns: [
      { name: "host_self_ns", kind: "duration", doc: "Time.", adds_up: false },
      { name: "host_self_bytes", kind: "bytes", doc: "Bytes." },
    ],
    data: { host_self_ns: [5, 6], host_self_bytes: [1, 2] },
  };
  const entry = { key: [], weight: "host_self_ns", picture: null } as unknown as ViewEntry;
  const { columns } = prepareTable(table, entry);
  same(columns.map(({ title }) => title), ["Host self", "Host self memory"]);
  same(columns.map(({ bar }) => bar !== null), [true, false]);
  same(columns.map(({ isSummed }) => isSummed), [false, false]);
});

const tableOf = (columns: Table["columns"], data: Table["data"]): Table => ({
  state: "ready",
  view: "",
  columns,
  data,
});
const entryOf = (weight: string) => ({ key: [], weight, picture: null }) as unknown as ViewEntry;
const summed = (table: Table, weight: string) =>
  prepareTable(table, entryOf(weight)).columns.find(({ name }) => name === weight)!.isSummed;

Deno.test("only what adds up over rows is summed", () => {
  const total = { name: "host_total_ns", kind: "duration" as const, doc: "With what is inside." };
  is(summed(tableOf([total], { host_total_ns: [5, 3] }), "host_total_ns"), false);
  const alive = { name: "alive_bytes", kind: "bytes" as const, doc: "Memory." };
  const device = { name: "device", kind: "text" as const, doc: "Device." };
  const memory = (second: string) => tableOf([device, alive], { device: ["cpu", second], alive_bytes: [1, 2] });
  same(["cpu", "cuda:0"].map((second) => summed(memory(second), "alive_bytes")), [true, false]);
});

Deno.test("milliseconds next to a few seconds are no zeros", () => {
  const duration = { name: "total_ns", kind: "duration" as const, doc: "Sum." };
  const units = [[1.5e9, 2e6], [15e9, 2e6], [1.5e9]].map((values) =>
    prepareTable(tableOf([duration], { total_ns: values }), entryOf("total_ns")).columns[0]!.scale
  );
  same(units.map(({ unit, decimals }) => `${decimals} ${unit}`), ["2 ms", "3 s", "2 s"]);
});

const scalesOf = (rows: Record<string, [addsUp: boolean, values: number[]]>) => {
  const columns = Object.entries(rows).map(([name, [adds_up]]) => ({
    ...{ name, adds_up, kind: "duration" as const, doc: "Time." },
  }));
  const data = Object.fromEntries(Object.entries(rows).map(([name, [, values]]) => [name, values]));
  const { columns: drawn } = prepareTable(tableOf(columns, data), entryOf("total_ns"));
  return drawn.map(({ scale }) => `${scale.decimals} ${scale.unit}`);
};

Deno.test("columns that are compared with each other have one unit", () => {
  same(
    scalesOf({
      total_ns: [true, [42e6, 9e6]],
      host_ns: [true, [512e3, 3e3]],
      mean_ns: [false, [790e3, 80e3]],
      max_ns: [false, [2.1e6, 80e3]],
      min_ns: [false, [131e3, 2e3]],
    }),
    ["2 ms", "4 ms", "4 ms", "4 ms", "4 ms"],
  );
  same(scalesOf({ mean_ns: [false, [262e6, 5]], delay_ns: [false, [1043, 20]] }), ["2 ms", "4 µs"]);
  same(scalesOf({ total_ns: [true, [42e6, 9e6]], zero_ns: [false, [0, 0]] }), ["2 ms", "2 ms"]);
});

Deno.test("of many rows a column with one text is constant, not one of numbers", () => {
  const columns = [
    { name: "device", kind: "id" as const, doc: "Device." },
    { name: "calls", kind: "count" as const, doc: "Calls." },
  ];
  const constants = (count: number, device = 0) => {
    const data = { device: Array.from({ length: count }, (_, i) => i ? 0 : device), calls: Array(count).fill(1) };
    return prepareTable(tableOf(columns, data), entryOf("calls")).columns.map(({ isConstant }) => isConstant);
  };
  same(constants(8), [true, false]);
  same(constants(8, 1), [false, false]);
  same(constants(7), [false, false]);
});

Deno.test("the texts of a column are sorted, each once and as it is shown", () => {
  const names = ["aten::mm", "relu", "aten::mm", null];
  const data = { name: names, total_ns: names.map(() => 1), gone_ns: names.map(() => null) };
  const [column] = prepareTable({ ...TABLE, data }, ENTRY).columns;
  same(sortedTexts(column!), ["", "aten::mm", "relu"]);
});

const drawn = (column: Partial<Column>, values: Value[]) => {
  const columns = [{ name: "name", kind: "text", doc: "Name." }, { name: "it", doc: "It.", ...column } as Column];
  const data = { name: values.map((_, row) => `row ${row}`), it: values };
  return prepareTable({ ...TABLE, columns, data } as Table, ENTRY);
};

Deno.test("a list of nothing is a missing value, and a column of them is empty", () => {
  same(drawn({ kind: "text" }, ["[]", null]).emptyColumns.map(({ name }) => name), ["it"]);
  same(drawn({ kind: "text" }, ["[]", "[[], [2]]"]).columns[1]!.values, [null, "[[], [2]]"]);
});

Deno.test("amounts of memory of which most are far below 1 GiB are in MiB", () => {
  const columns = [{ name: "peak_bytes", kind: "bytes" as const, doc: "Memory." }];
  const unit = (peak_bytes: number[]) =>
    prepareTable({ ...TABLE, columns, data: { peak_bytes } }, ENTRY).columns[0]!.scale.unit;
  is(unit([2 ** 34, 2 ** 20, 2 ** 16]), "MiB");
  is(unit([2 ** 34, 2 ** 30, 2 ** 16]), "GiB");
});

Deno.test("devices of an unknown vendor are no GPUs in titles and definitions", () => {
  const column = { name: "gpu_span_ns", kind: "duration" as const, doc: "GPU time, as long as the GPU runs." };
  const titleAndDoc = () => {
    const { title, doc } = prepareTable({ ...TABLE, columns: [column], data: { gpu_span_ns: [1] } }, ENTRY).columns[0]!;
    return [title, doc];
  };
  same(titleAndDoc(), ["GPU span", "GPU time, as long as the GPU runs."]);
  matrixUnits.value = "tensor or matrix cores";
  same(titleAndDoc(), ["Device span", "Device time, as long as the device runs."]);
  matrixUnits.value = TENSOR_CORES;
});

Deno.test("rates far below 1 TB/s are in GB/s, also next to a larger one", () => {
  const unitOf = (...values: number[]) => drawn({ kind: "byte_rate" }, values).columns[1]!.scale.unit;
  same([unitOf(2.1e12, 5.8e9), unitOf(2.1e12, 1.2e12), unitOf(5.8e9), unitOf(2e13, 5.8e9)], [
    "GB/s",
    "TB/s",
    "GB/s",
    "TB/s",
  ]);
});

Deno.test("a value that is an id is in the words of its column, and is found by both", () => {
  const { columns, texts } = drawn({ kind: "text", words: { dependency: "Waiting for another stream" } }, [
    "dependency",
    null,
    "new id",
  ]);
  is([0, 1, 2].map((row) => columns[1]!.shown!(row)).join(), "Waiting for another stream,–,new id");
  is(/^dependency$/m.test(texts[0]!) && /^Waiting for another stream$/m.test(texts[0]!), true);
});

Deno.test("a column with one text in all of many rows doesn't name them: the next one comes first", () => {
  const columns: Column[] = ["step", "part"].map((name) => ({ name, kind: "text", doc: "Text." }));
  const names = (count: number, steps: string[]) => {
    const part = Array.from({ length: count }, (_, row) => `part ${row}`);
    const step = part.map((_, row) => steps[row % steps.length]!);
    const table: Table = { state: "ready", view: "path", columns, data: { step, part } };
    return prepareTable(table, { ...ENTRY, key: ["step", "part"] }).columns.map(({ name }) => name);
  };
  same(names(8, ["all"]), ["part", "step"]);
  same(names(8, ["1", "2"]), ["step", "part"]);
  same(names(7, ["all"]), ["step", "part"]);
});

Deno.test("on a narrow page the weight stands behind the texts that name a row together", () => {
  const columns = [
    { name: "cause", kind: "text", doc: "", shown_as: "name" },
    { name: "host", kind: "text", doc: "", shown_as: "name" },
    { name: "kind", kind: "text", doc: "" },
    { name: "total_ns", kind: "duration", doc: "" },
  ] as Column[];
  const data = { cause: ["a", "b"], host: ["c", "d"], kind: ["e", "f"], total_ns: [1, 2] };
  const ready = prepareTable({ ...TABLE, columns, data }, { ...ENTRY, key: ["culprit"] }).columns;
  const count = leadingNames(ready, ["culprit"]);
  same(weightAfter(ready, "total_ns", count).map(({ name }) => name), ["cause", "host", "total_ns", "kind"]);
  same(weightAfter(ready, "total_ns").map(({ name }) => name), ["cause", "total_ns", "host", "kind"]);
  is(leadingNames(ready.slice(0, 2), ["culprit"]), 2);
});
