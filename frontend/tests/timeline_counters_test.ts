import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { parseFilter } from "../src/table/order.ts";
import { counterText, valueAt } from "../src/timeline/draw/counters.ts";
import { layoutOf } from "../src/timeline/model/layout.ts";
import type { Counter, Track } from "../src/api/timeline_types.ts";
import { CURVES } from "../src/timeline/model/tiles.ts";

const counter = (id: number, device_index: number | null): Counter => ({
  id,
  name: "Allocated memory",
  kind: "bytes",
  device: device_index === null ? "cpu" : `cuda:${device_index}`,
  device_index,
  stream: null,
  least: 0,
  most: 2 ** 30,
  is_relative: false,
  unit: "",
});

Deno.test("a batch of curves is read tile by tile, and has no value where the curve has none", () => {
  const numbers = new Float64Array(2 * 3 * 512);
  numbers[0] = 1;
  numbers[512] = 3;
  numbers[1024] = 2;
  numbers[1025] = NaN;
  numbers[3 * 512 + 1024] = 9;
  const [first, second] = CURVES.read(numbers.buffer);
  is(second!.last[0], 9);
  const pieces = [{ tile: first!, level: 3, begin: 0, from: 0, to: 4096 }];
  same(valueAt(pieces, 7), { least: 1, most: 3, last: 2 });
  is(valueAt(pieces, 8), null);
  is(valueAt(pieces, 5000), null);
});

Deno.test("values have their unit, changes a sign", () => {
  is(counterText(counter(0, 0), 2048), "2 KiB");
  is(counterText({ ...counter(0, 0), is_relative: true }, 2048), "+2 KiB");
  is(counterText({ ...counter(0, 0), kind: "count" }, 7), "7");
});

const track = (process: string, device: number | null): Track => ({
  process,
  name: process,
  part: device === null ? "calls" : "work",
  device,
  stream: device,
  pid: null,
  tid: null,
  first_row: 0,
  lanes: 1,
  slices: 1,
});

Deno.test("the counters of a device are unfolded", () => {
  const tracks = [track("GPU 0", 0), track("process 1", null)];
  const counters = [0, 1, 2, 3, 4].map((id) => counter(id, 0));
  const options = { main: "rank0", toggled: new Set<string>(), pins: [], order: [], filter: parseFilter("") };
  const { lines } = layoutOf([{ id: "rank0", tracks, counters }], options);
  same(lines.filter(({ kind }) => kind === "counter").map(({ id }) => id), [0, 1, 2, 3, 4].map((id) => `c0.${id}`));
});

Deno.test("counters stand with their device, those of the host with its first process", () => {
  const tracks = [track("GPU 0", 0), track("GPU 1", 1), track("process 1", null), track("process 2", null)];
  const counters = [counter(0, 1), counter(1, null)];
  const options = { main: "rank0", toggled: new Set<string>(), pins: [], order: [], filter: parseFilter("") };
  const { lines } = layoutOf([{ id: "rank0", tracks, counters }], options);
  same(lines.filter(({ id }) => /^[pc]/.test(id)).map(({ id }) => id), [
    "p0",
    "p1",
    "c1",
    "c1.0",
    "p2",
    "c2",
    "c2.1",
    "p3",
  ]);
});
