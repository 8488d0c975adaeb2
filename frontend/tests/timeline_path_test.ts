import { deepStrictEqual as same } from "node:assert/strict";
import { parseFilter } from "../src/order.ts";
import { layoutOf } from "../src/timeline/layout.ts";
import type { Part, Stretch, Track } from "../src/timeline/model.ts";
import { barsOf, linksOf } from "../src/timeline/path_overlay.ts";
import type { Source } from "../src/timeline/state.ts";

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
const wishes = { main: "rank0", turned: new Set<string>(), pins: [], order: [], filter: parseFilter("") };
const laid = layoutOf([{ id: "rank0", tracks, counters: [] }], wishes);
const geometry = { width: 1000, height: 600, range: { from: 0, to: 1000 }, laid, scroll: 0 };
const source = { id: "rank0", shift_ns: 0, meta: { tracks } } as unknown as Source;

const stretch = (from_ns: number, to_ns: number, track?: number, lane = 0): Stretch => ({
  from_ns,
  to_ns,
  part: "",
  reason: "",
  count: 1,
  slice: track === undefined
    ? null
    : { slice: 0, name: "", category: "", track, lane, start_ns: from_ns, dur_ns: to_ns - from_ns },
});

Deno.test("a path's bars are as long as its stretches, and waits are lines between bars", () => {
  const bars = barsOf(geometry, source, [stretch(0, 100, 1), stretch(100, 110), stretch(110, 400, 0)]);
  same(bars.map(({ left, right }) => [left, right]), [[0, 100], [110, 400]]);
  same(linksOf(bars).map(([from, to]) => [from.right, to.left]), [[100, 110]]);
});

Deno.test("stretches side by side on one lane are one bar, what is far out of sight is none", () => {
  const far = stretch(9000, 9100, 1);
  same(barsOf(geometry, source, [stretch(0, 10, 1), stretch(10, 20, 1), far]).map(({ right }) => right), [20]);
});

Deno.test("the paths of two steps aren't joined", () => {
  const bars = barsOf(geometry, source, [stretch(0, 100, 1), stretch(150, 300, 1)]);
  same(bars.length, 2);
  same(linksOf(bars), []);
});

Deno.test("narrow bars of one thread aren't joined, but the way to another thread always is", () => {
  const bars = barsOf(geometry, source, [stretch(0, 1, 1, 0), stretch(1, 2, 1, 1), stretch(2, 3, 0)]);
  same(linksOf(bars).map(([from, to]) => [from.left, to.left]), [[1, 2]]);
});
