import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { parseFilter } from "../src/table/order.ts";
import {
  axisOf,
  foldsAround,
  groupsOf,
  LANE,
  layoutOf,
  type LayoutOptions,
  lineOf,
} from "../src/timeline/model/layout.ts";
import { shortName, TextFitter } from "../src/timeline/model/text_fit.ts";
import type { Counter, Part, Track } from "../src/api/timeline_types.ts";
import {
  areaIn,
  areaText,
  findIn,
  listIn,
  listText,
  numberIn,
  numberText,
  rangeOf,
} from "../src/timeline/model/url_codec.ts";

const track = (process: string, name: string, part: Part, lanes: number, stream: number | null = null): Track => ({
  process,
  name,
  part,
  lanes,
  stream,
  device: stream === null ? null : 0,
  pid: "1",
  tid: name,
  first_row: 0,
  slices: lanes * 10,
});

const TRACKS = [
  track("GPU 0", "stream 7", "work", 1, 7),
  track("process 1", "1", "annotations", 2),
  track("process 1", "1", "calls", 5),
  track("process 1", "1", "python", 30),
  track("process 1", "2", "calls", 3),
  track("process Spans", "marks", "other", 1),
];

const laid = (options: Partial<LayoutOptions> = {}, ids = ["rank0"]) =>
  layoutOf(ids.map((id) => ({ id, tracks: TRACKS, counters: [] })), {
    main: "rank0",
    toggled: new Set(),
    pins: [],
    order: [],
    filter: parseFilter(""),
    ...options,
  });

Deno.test("a counter of a stream names it", () => {
  const counter = { id: 0, name: "Queue length", device_index: 0, stream: 7 } as unknown as Counter;
  const { lines } = layoutOf([{ id: "rank0", tracks: TRACKS, counters: [counter] }], {
    main: "rank0",
    toggled: new Set(),
    pins: [],
    order: [],
    filter: parseFilter(""),
  });
  same(lines.filter(({ kind }) => kind === "counter").map(({ title }) => title), ["Queue length, stream 7"]);
});

Deno.test("processes hold threads, these their parts; Python is folded, and so are marks of tools", () => {
  same(laid().lines.map(({ id, kind, isFolded }) => [id, kind, isFolded]), [
    ["p0", "process", false],
    ["a0", "axis", false],
    ["p1", "process", false],
    ["a1", "axis", false],
    ["t2", "part", false],
    ["t3", "part", true],
    ["a4", "axis", false],
    ["p5", "process", true],
  ]);
});

Deno.test("lines follow each other without overlap, and a band is as high as its lanes", () => {
  const { lines, height } = laid();
  lines.forEach((line, i) => is(line.y >= (i ? lines[i - 1]!.y + lines[i - 1]!.height : 0), true));
  is(lines.at(-1)!.y + lines.at(-1)!.height, height);
  is(lineOf(laid(), "rank0", 2)!.height, 5 * LANE);
  is(lineOf(laid(), "rank0", 3)!.band!.isMini, true);
});

Deno.test("what is turned is folded otherwise, and a folded thread shows what it does most", () => {
  const { lines } = laid({ toggled: new Set(["t3", "a1"]) });
  is(lines.find(({ id }) => id === "a1")!.band!.track, 2);
  is(lines.some(({ id }) => id === "t3"), false);
  is(lineOf(laid({ toggled: new Set(["t3"]) }), "rank0", 3)!.band!.rows, 30);
});

Deno.test("a pinned thread stands above with its process, and not below", () => {
  const { pinned, lines } = laid({ pins: ["a4"] });
  same(pinned.map(({ id, title }) => [id, title]), [["a4", "2 · process 1"]]);
  is(lines.some(({ id }) => id === "a4"), false);
  is(axisOf({ ...laid() }, laid().lines[0]!), undefined);
});

Deno.test("a filter keeps the threads whose process or name has the words", () => {
  same(laid({ filter: parseFilter("stream") }).lines.map(({ id }) => id), ["p0", "a0"]);
  same(laid({ filter: parseFilter("nothing") }).lines, []);
});

Deno.test("workers are stacked, and the ids of lines of other workers end in their names", () => {
  const { lines } = laid({}, ["rank0", "rank1"]);
  same(lines.filter(({ kind }) => kind === "source").map(({ id, title }) => [id, title]), [
    ["s", "rank0"],
    ["s.rank1", "rank1"],
  ]);
  is(lines.find(({ id }) => id === "a4.rank1")!.isFolded, true);
});

Deno.test("workers, processes and threads are reordered; unknown ids change nothing", () => {
  const heads = (order: string[], ids = ["rank0"], options: Partial<LayoutOptions> = {}) =>
    laid({ order, ...options }, ids).lines.filter(({ group }) => group).map(({ id }) => id);
  same(heads([]), ["p0", "a0", "p1", "a1", "a4", "p5"]);
  same(heads(["a4"]), ["p0", "a0", "p1", "a4", "a1", "p5"]);
  same(heads(["p5", "p1", "nobody", "a0"]), ["p5", "p1", "a1", "a4", "p0", "a0"]);
  same(heads(["s.rank1"], ["rank0", "rank1"], { toggled: new Set(["s", "s.rank1"]) }), ["s.rank1", "s"]);
  same(heads(["a4"], ["rank0"], { filter: parseFilter("1") }), ["p1", "a4", "a1"]);
});

Deno.test("what is moved keeps its folds and its part: the thread that does most stays open among workers", () => {
  const { lines } = laid({ order: ["a4", "a4.rank1"] }, ["rank0", "rank1"]);
  same(["a1", "a4", "a1.rank1", "a4.rank1"].map((id) => lines.find((line) => line.id === id)!.isFolded), [
    false,
    true,
    false,
    true,
  ]);
});

Deno.test("pinned threads stand in the order of the pins, whosever they are", () => {
  const { pinned, lines } = laid({ pins: ["a4.rank1", "a0", "a4"] }, ["rank0", "rank1"]);
  same(pinned.map(({ id, group }) => [id, group]), [["a4.rank1", "pins"], ["a0", "pins"], ["a4", "pins"]]);
  is(lines.some(({ id }) => id === "p0"), false);
});

Deno.test("a process keeps its name in the address when its first thread is pinned or filtered away", () => {
  same(laid({ pins: ["a1"] }).lines.map(({ id }) => id), ["p0", "a0", "p1", "a4", "p5"]);
  const { lines } = laid({ filter: parseFilter("re:process 1 2$") });
  same(lines.map(({ id }) => id), ["p1", "a4"]);
});

Deno.test("those who can change places are known with those that aren't shown", () => {
  const sources = ["rank0", "rank1"].map((id) => ({ id, tracks: TRACKS, counters: [] }));
  same(Object.fromEntries(groupsOf(sources, "rank0")), {
    sources: ["s", "s.rank1"],
    s: ["p0", "p1", "p5"],
    p0: ["a0"],
    p1: ["a1", "a4"],
    p5: ["a5"],
    "s.rank1": ["p0.rank1", "p1.rank1", "p5.rank1"],
    "p0.rank1": ["a0.rank1"],
    "p1.rank1": ["a1.rank1", "a4.rank1"],
    "p5.rank1": ["a5.rank1"],
  });
});

Deno.test("what hides a track is known from the inside out", () => {
  const options = { main: "rank0", toggled: new Set<string>(), pins: [], order: [], filter: parseFilter("") };
  same(foldsAround({ id: "rank0", tracks: TRACKS }, 3, options), ["t3", "a1", "p1", "s"]);
});

Deno.test("names lose their least distinctive parts", () => {
  is(shortName("aten::addmm"), "addmm");
  is(
    shortName("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int, float)"),
    "vectorized_elementwise_kernel",
  );
  is(shortName("void (anonymous namespace)::copy<int>(int)"), "copy");
  is(shortName("autograd::engine::evaluate_function: AddmmBackward0"), "AddmmBackward0");
  is(shortName("_call_impl (torch/nn/modules/module.py:1501)"), "_call_impl");
  is(shortName("nn.Module: Linear_0"), "Linear_0");
  for (
    const name of ["ProfilerStep#5", "## forward ##", "Memcpy HtoD (Pageable -> Device)", "ampere_sgemm_128x64_tn"]
  ) {
    is(shortName(name), name);
  }
});

Deno.test("a name is whole, short, cut or left out, as there is room", () => {
  const fitter = new TextFitter((text) => text.length);
  is(fitter.fit("aten::addmm", 11), "aten::addmm");
  is(fitter.fit("aten::addmm", 10), "addmm");
  is(fitter.fit("aten::addmm", 4.5), "add…");
  is(fitter.fit("aten::addmm", 2), "");
});

Deno.test("a cut name ends within its room, however wide its letters are", () => {
  const width = (text: string) => [...text].reduce((sum, letter) => sum + (/[A-Z…]/.test(letter) ? 3 : 1), 0);
  const fitter = new TextFitter(width);
  for (const name of ["NCCLAllReduce_bf16_ring", "aWWWWWWWWWWWW", "iiiiiiiiiiiiiW"]) {
    for (let room = 1; room < width(name); room += 0.5) is(width(fitter.fit(name, room)) <= room, true);
  }
  is(fitter.fit("NCCLAll", 13), "NCC…");
});

Deno.test("places survive the address, whatever workers are called", () => {
  const names = ["rank0", "a,b", "50%", "x~y.z"];
  same(listIn(listText(names)), names);
  same(listIn("%,a"), ["a"]);
  for (const name of names) same(numberIn(numberText(name, 7, "rank0"), "rank0"), { source: name, number: 7 });
  const area = { from: 5, to: 90, tracks: [{ source: "rank0", track: 1 }, { source: "x~y.z", track: 2 }] };
  same(
    areaIn(areaText({ ...area, tracks: area.tracks.slice(0, 1) }, "rank0"), "rank0")!.tracks,
    area.tracks.slice(0, 1),
  );
  same(areaIn(areaText(area, "rank0"), "rank0"), area);
  for (const text of ["", "5", "9~5~", "a~b~"]) is(areaIn(text, "rank0"), null);
  same([rangeOf("1", "2"), rangeOf("2", "1"), rangeOf("", "1"), rangeOf("x", "1")], [
    { from: 1, to: 2 },
    null,
    null,
    null,
  ]);
  same([findIn('{"text":"mm"}'), findIn("{}"), findIn("[1]"), findIn("{")], [{ text: "mm" }, null, null, null]);
});
