import { deepStrictEqual as same } from "node:assert/strict";
import { parseFilter } from "../src/table/order.ts";
import { layoutOf } from "../src/timeline/model/layout.ts";
import type { CrossRankSegment, Part, PathSegment, Track } from "../src/api/timeline_types.ts";
import { barsAcross, barsOf, linksOf } from "../src/timeline/draw/path_overlay.ts";
import type { Source } from "../src/timeline/state/sources.ts";

const track = (name: string, part: Part, lanes: number, stream: number | null): Track => ({
  process: stream === null ? "process 1" : "GPU 0",
  name,
  part,
  lanes,
  stream,
  device: stream === null ? null : 0,
  pid: "1",
  tid: name,
  first_row: 0,
  slices: 9,
});
const tracks = [track("stream 7", "work", 1, 7), track("1", "calls", 3, null)];
const options = { main: "rank0", toggled: new Set<string>(), pins: [], order: [], filter: parseFilter("") };
const layout = layoutOf([{ id: "rank0", tracks, counters: [] }], options);
const geometry = { width: 1000, height: 600, range: { from: 0, to: 1000 }, layout, scroll: 0 };
const source = { id: "rank0", shift_ns: 0, meta: { tracks } } as unknown as Source;

const segment = (from_ns: number, to_ns: number, track?: number, lane = 0): PathSegment => ({
  from_ns,
  to_ns,
  part: "",
  reason: "",
  count: 1,
  slice: track === undefined
    ? null
    : { slice: 0, name: "", category: "", track, lane, start_ns: from_ns, dur_ns: to_ns - from_ns },
});

Deno.test("a path's bars are as long as its segments, and waits are lines between bars", () => {
  const bars = barsOf(geometry, source, [segment(0, 100, 1), segment(100, 110), segment(110, 400, 0)]);
  same(bars.map(({ left, right }) => [left, right]), [[0, 100], [110, 400]]);
  same(linksOf(bars).map(([from, to]) => [from.right, to.left]), [[100, 110]]);
});

Deno.test("segments side by side on one lane are one bar, what is far out of sight is none", () => {
  const far = segment(9000, 9100, 1);
  same(barsOf(geometry, source, [segment(0, 10, 1), segment(10, 20, 1), far]).map(({ right }) => right), [20]);
});

Deno.test("a path through a folded thread, or a folded process, is drawn on its line", () => {
  const all = [...tracks, track("1", "python", 9, null)];
  const folded = (id: string) =>
    layoutOf([{ id: "rank0", tracks: all, counters: [] }], { ...options, toggled: new Set([id]) });
  const of = { ...source, meta: { tracks: all } } as unknown as Source;
  for (const id of ["a1", "p1"]) {
    const laid = folded(id), line = laid.lines.find((one) => one.id === id)!;
    const bars = barsOf({ ...geometry, layout: laid }, of, [segment(0, 100, 1, 2), segment(100, 200, 2, 5)]);
    same(bars.map(({ left, right }) => [left, right]), [[0, 200]]);
    same(bars[0]!.y > line.y && bars[0]!.y < line.y + line.height, true);
  }
});

Deno.test("the paths of two steps aren't joined", () => {
  const bars = barsOf(geometry, source, [segment(0, 100, 1), segment(150, 300, 1)]);
  same(bars.length, 2);
  same(linksOf(bars), []);
});

Deno.test("narrow bars of one thread aren't joined, but the way to another thread always is", () => {
  const bars = barsOf(geometry, source, [segment(0, 1, 1, 0), segment(1, 2, 1, 1), segment(2, 3, 0)]);
  same(linksOf(bars).map(([from, to]) => [from.left, to.left]), [[1, 2]]);
});

const other = { id: "rank1", shift_ns: 500, meta: { tracks } } as unknown as Source;
const twoLaid = layoutOf(["rank0", "rank1"].map((id) => ({ id, tracks, counters: [] })), options);
const both = { ...geometry, layout: twoLaid };
const across = (number: number, piece: PathSegment, step = "7"): CrossRankSegment => ({
  ...piece,
  step,
  first: number,
  last: number,
  since: null,
  until: "",
});

Deno.test("a path across ranks leads over from one worker to the next, each on its own clock", () => {
  const of0 = [across(0, segment(0, 100, 1)), across(2, segment(300, 400, 0))];
  const of1 = [across(1, segment(-400, -250, 1)), across(1, segment(-250, -200, 0))];
  const bars = barsAcross(both, [[source, of0], [other, of1]]);
  same(bars.map(({ left, right, axis }) => [left, right, axis.split(" ")[0]]), [
    [0, 100, "rank0"],
    [100, 250, "rank1"],
    [250, 300, "rank1"],
    [300, 400, "rank0"],
  ]);
  same(linksOf(bars).map(([from, to]) => [from.right, to.left]), [[100, 100], [250, 250], [300, 300]]);
});

Deno.test("no line leads over where the path is on a worker that isn't shown, nor from step to step", () => {
  const list = [
    across(0, segment(0, 100, 1)),
    across(2, segment(200, 300, 1)),
    across(3, segment(300, 350, 1), "8"),
  ];
  const bars = barsAcross(both, [[source, list], [other, []]]);
  same(bars.map(({ begins }) => begins), [true, true, true]);
  same(linksOf(bars), []);
});

Deno.test("unrecorded time before a step leads to the first visible bar of the path", () => {
  const before = { ...across(0, segment(0, 300)), part: "before the step" };
  const bars = barsAcross(both, [[source, [before, across(1, segment(300, 400, 1))]], [other, []]]);
  same(bars.map(({ left, unseen }) => [left, unseen]), [[300, 0]]);
});
