import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import numbers from "./numbers.json" with { type: "json" };
import {
  align,
  cell,
  cutAmong,
  cutApart,
  decimal,
  exact,
  fileSize,
  type Kind,
  label,
  nameLikeness,
  percent,
  quantity,
  scaled,
  scaleFor,
  shorten,
  timeRange,
} from "../src/format/numbers.ts";

Deno.test("a column has one unit and as many decimals as its smallest value needs, at most two more than its largest", () => {
  same(scaleFor("duration", [98_588_667, 89_000, null]), { unit: "ms", divisor: 1e6, decimals: 3 });
  same(scaleFor("duration", [98_588_667, 9_100_000]), { unit: "ms", divisor: 1e6, decimals: 2 });
  same(scaleFor("duration", [999]), { unit: "ns", divisor: 1, decimals: 0 });
  same(scaleFor("bytes", [34_084_028_416]), { unit: "GiB", divisor: 2 ** 30, decimals: 1 });
  same(scaleFor("count", [3, 70]), { unit: "", divisor: 1, decimals: 0 });
  same(scaleFor("number", [9.8]), { unit: "", divisor: 1, decimals: 2 });
  same(scaleFor("duration", []), { unit: "ns", divisor: 1, decimals: 0 });
});

Deno.test("rates and operations count in thousands", () => {
  is(quantity(1_307_400_000_000_000, "flop_rate"), "1.31 PFLOP/s");
  is(quantity(2_039_000_000_000, "byte_rate"), "2.04 TB/s");
  is(quantity(221_184, "flop"), "221 kFLOP");
  is(exact(2.5, "byte_rate"), "2.5 bytes/s");
  is(label("achieved_flop_per_s"), "Achieved");
  is(label("moved_bytes_per_s"), "Moved");
});

Deno.test("a value that rounds to zero but isn't is marked", () => {
  const scale = scaleFor("duration", [98_588_667, 100]);
  is(scaled(100, scale), "<0.001");
  is(scaled(-100, scale), "≈0");
  is(scaled(0, scale), "0");
});

Deno.test("numbers in a column have their points below each other", () => {
  const scale = scaleFor("duration", [98_588_667, 3_200_000, 89_000, 0]);
  const texts = [98_588_667, 3_200_000, 89_000, 0].map((value) => align(scaled(value, scale), scale));
  same(texts, ["98.6\u2007\u2007", "3.2\u2007\u2007", "0.089", "0\u2008\u2007\u2007\u2007"]);
  is(align("–", scale), "–");
});

Deno.test("times of day keep the decimals that tell them apart", () => {
  const scale = scaleFor("instant", [12_345_678_901, 12_340_000_000]);
  same([12_345_678_901, 12_340_000_000].map((value) => scaled(value, scale)), ["12.35", "12.34"]);
});

for (const [value, kind, text] of numbers as [number, Kind, string][]) {
  Deno.test(`${value} as ${kind} is ${text}`, () => is(quantity(value, kind), text));
}

Deno.test("thousands have thin spaces from five digits on", () => {
  is(decimal(1234), "1234");
  is(decimal(75718), "75\u202f718");
  is(decimal(-1234567.25, 1), "−1\u202f234\u202f567.3");
});

Deno.test("missing is a dash, never zero", () => {
  const scale = scaleFor("duration", []);
  is(cell(null, "duration", scale), "–");
  is(cell(false, "bool", scale), "no");
  is(cell(12345, "id", scale), "12345");
  is(percent(null), "–");
  is(quantity(undefined, "bytes"), "–");
  is(exact(null, "duration"), "not recorded");
});

Deno.test("hovering shows the value as recorded", () => {
  is(exact(98_588_667, "duration"), "98\u202f588\u202f667 ns");
  is(exact(9.800000000000002, "number"), "9.8");
  is(exact(0.5, "fraction"), "50 %");
  is(exact(1 / 3, "fraction"), "33.333333 %");
});

Deno.test("names become headings without their unit", () => {
  is(label("device_self_ns"), "Device self");
  is(label("first_byte"), "File offset");
  is(label("tc_time_frac"), "TC time");
  is(label("mean_blocks_per_sm"), "Mean blocks per SM");
});

Deno.test("long names keep both ends", () => {
  is(shorten("abcdefghij", 10), "abcdefghij");
  is(shorten("abcdefghij", 7), "abcd…ij");
});

Deno.test("names that would look the same are cut where they differ", () => {
  const cut = (text: string) => shorten(text, 12);
  const runs = ["resnet50_num_workers_0", "resnet50_num_workers_4", "short"];
  same(runs.map((run) => cutApart(run, runs, cut)), ["resnet5…rs_0", "resnet5…rs_4", "short"]);
  const inside = ["a long prefix, then 1 in a long name", "a long prefix, then 2 in a long name"];
  same(inside.map((run) => cutApart(run, inside, cut)), ["…n 1 in…name", "…n 2 in…name"]);
});

Deno.test("a cut name keeps its beginning and what tells it from others that begin so", () => {
  const names = [
    ...["## Call CompiledFxGraph fan5x2mm ##", "## Call CompiledFxGraph ffyz5x2m ##", "aten::cudnn_batch_norm"],
    ...["aten::cudnn_convolution_backward_input", "aten::cudnn_convolution_backward_weight"],
    ...["conv implicit_gemm cuDNN 1024 5 fp32", "conv implicit_gemm cuDNN 1024 6 fp32"],
    ...["conv implicit_gemm cuDNN 128 6 fp32", "max_pool2d_with_indices", "max_pool2d_with_indices_backward"],
    "vectorized_elementwise_kernel",
  ].sort();
  const cut = names.map((name) => cutAmong(names, name, 24));
  same(cut, [
    "## Call Co … fan5x2mm ##",
    "## Call Co … ffyz5x2m ##",
    "aten::cudnn_batch_norm",
    "aten::cudnn_con … _input",
    "aten::cudnn_co … _weight",
    "conv impli … 1024 5 fp32",
    "conv impli … 1024 6 fp32",
    "conv implic … 128 6 fp32",
    "max_pool2d_with_indices",
    "max_pool2d_ … s_backward",
    "vectorized_elementwise_…",
  ]);
  is(new Set(cut).size, names.length);
});

Deno.test("names of one experiment are alike wherever they differ, and those of one folder aren't", () => {
  const alike = (a: string, b: string) => Math.round(100 * nameLikeness(a, b));
  is(alike("runs-resnet50_workers_4", "claims-resnet50_workers_0"), 50);
  is(alike("runs-resnet50_workers_4", "runs-bert_small"), 25);
  is(alike("step10", "step11"), 83);
  is(alike("a_a_a", "a_b"), 50);
  is(alike("", ""), 100);
});

Deno.test("sizes of files are in the units of file managers", () => {
  same([300, 1_384_658, 25_000_000, 3.2e9].map(fileSize), ["0.3 KB", "1.4 MB", "25 MB", "3.2 GB"]);
});

Deno.test("a range of times names its unit once, and that of nothing not at all", () => {
  is(timeRange(6_900_000, 8_100_000), "6.9 to 8.1 ms");
  is(timeRange(890_000, 8_100_000), "890 µs to 8.1 ms");
  is(timeRange(0, 8_100_000), "0 to 8.1 ms");
});
