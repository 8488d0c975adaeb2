import { deepStrictEqual as same, ok, strictEqual as is } from "node:assert/strict";
import type { Meta } from "../src/api/timeline_types.ts";
import { Motion } from "../src/timeline/draw/motion.ts";
import {
  clampRange,
  interpolateRange,
  padRange,
  shiftRange,
  shiftWithin,
  SHORTEST_NS,
  startRange,
  stepLabels,
  stepOf,
  zoomRange,
} from "../src/timeline/model/ranges.ts";
import { marks } from "../src/timeline/model/times.ts";

const WHOLE = { from: 0, to: 100_000 };

Deno.test("zooming keeps the time under the pointer where it is", () => {
  const { from, to } = zoomRange({ from: 1000, to: 2000 }, 0.5, 1250);
  same({ from, to }, { from: 1125, to: 1625 });
  is((1250 - 1000) / 1000, (1250 - from) / (to - from));
});

Deno.test("a range stays within the recording and a margin, and never gets too short", () => {
  same(clampRange({ from: -50_000, to: -40_000 }, WHOLE), { from: -2000, to: 8000 });
  same(clampRange({ from: 99_000, to: 109_000 }, WHOLE), { from: 92_000, to: 102_000 });
  same(clampRange({ from: -1e9, to: 1e9 }, WHOLE), { from: -2000, to: 102_000 });
  is(clampRange({ from: 50, to: 51 }, WHOLE).to - clampRange({ from: 50, to: 51 }, WHOLE).from, SHORTEST_NS);
});

Deno.test("a shifted range comes to rest at an end of the recording, and never moves away from it", () => {
  const whole = { from: -3.7, to: 1e9 / 3 };
  for (const [by, end, edge] of [[1e7 / 7, "to", whole.to], [-1e7 / 7, "from", whole.from]] as const) {
    let range = { from: 1e8 / 3, to: 1e8 + 0.1 };
    for (let frame = 0; frame < 300; frame++) range = shiftWithin(range, by, whole);
    ok(Math.abs(range[end] - edge) < 1e-6);
    same(shiftWithin(range, by, whole), range);
  }
  const beyond = { from: -10, to: whole.to + 10 };
  same(shiftWithin(beyond, 5, whole), beyond);
  same(shiftWithin(beyond, -5, whole), beyond);
});

Deno.test("the way between two ranges begins and ends at them and zooms evenly", () => {
  const a = { from: 0, to: 1000 }, b = { from: 400, to: 410 };
  ok(Math.abs(interpolateRange(a, b, 0).from) < 1e-6 && Math.abs(interpolateRange(a, b, 0).to - 1000) < 1e-6);
  const half = interpolateRange(a, b, 0.5), end = interpolateRange(a, b, 1);
  ok(Math.abs(half.to - half.from - 100) < 1e-6);
  ok(Math.abs(end.from - 400) < 1e-6 && Math.abs(end.to - 410) < 1e-6);
  ok(Math.abs(interpolateRange(a, shiftRange(a, 500), 0.5).from - 250) < 1e-6);
});

const meta = (steps: [number, number, boolean][], device: number[] | null): Meta => ({
  state: "ready",
  stamp: "",
  window: [0, 1000],
  origin_ns: "0",
  clock_error_ns: null,
  clock_offset_ns: null,
  slices: 0,
  labels: 0,
  categories: [],
  tracks: [],
  steps: steps.map(([start_ns, end_ns, is_complete], i) => ({ name: String(i), start_ns, end_ns, is_complete })),
  activity: { device, host: null },
  counters: [],
});

Deno.test("first shown is the first complete step with device work, else the first, else all", () => {
  const idle = new Array(10).fill(0), busy = [...idle];
  busy[5] = 0.5;
  const steps: [number, number, boolean][] = [[0, 100, false], [100, 400, true], [400, 700, true]];
  same(startRange(meta(steps, busy)), padRange({ from: 400, to: 700 }));
  same(startRange(meta(steps, null)), padRange({ from: 100, to: 400 }));
  same(startRange(meta([[0, 100, false]], idle)), padRange({ from: 0, to: 100 }));
  same(startRange(meta([], busy)), padRange({ from: 0, to: 1000 }));
});

Deno.test("a held key moves until it is released, a destination is reached exactly", () => {
  const motion = new Motion();
  motion.press("in", 0);
  const first = motion.step({ from: 0, to: 1000 }, WHOLE, 500, 16);
  ok(first.to - first.from < 1000 && Math.abs(first.from + first.to - 1000) < 1e-6);
  motion.release("in");
  is(motion.isMoving, false);
  same(motion.step(first, WHOLE, 500, 32), first);
  motion.go(first, { from: 10, to: 20 }, 40);
  ok(motion.isMoving);
  same(motion.step(first, WHOLE, 500, 5000), { from: 10, to: 20 });
  is(motion.isMoving, false);
});

Deno.test("a ruler has round marks in a unit that fits", () => {
  same(marks(0, 2500, 1000), [{ at: 0, text: "0 µs" }, { at: 1000, text: "1 µs" }, { at: 2000, text: "2 µs" }]);
  same(marks(4.9e6, 10.1e6, 2e6).map(({ text }) => text), ["6 ms", "8 ms", "10 ms"]);
  same(marks(0, 5e6, 2.5e6).map(({ text }) => text), ["0 ms", "2.5 ms", "5 ms"]);
  same(marks(3, 5.5, 0.4).map(({ text }) => text), ["3 ns", "4 ns", "5 ns"]);
});

const step = (name: string, start_ns: number, end_ns: number) => ({ name, start_ns, end_ns, is_complete: true });

Deno.test("a time is in the step that holds it; its end is the next one's", () => {
  const steps = [step("7", 0, 10), step("8", 10, 20)];
  is(stepOf(steps, 9)?.name, "7");
  is(stepOf(steps, 10)?.name, "8");
  is(stepOf(steps, 20), null);
});

Deno.test("a step's label names a server's phase, batch and part", () => {
  same(stepLabels(step("7", 0, 10)), ["Step 7", "Step 7"]);
  is(stepLabels({ ...step("7", 0, 10), is_complete: false })[1], "Step 7 (cut)");
  const iteration = { ...step("3", 0, 9), phase: "decode", part: "steady", batch: 16 };
  same(stepLabels(iteration), ["decode 3", "decode 3  ·  batch 16"]);
  is(stepLabels({ ...iteration, part: "warm-up", batch: -1, is_complete: false })[1], "decode 3 (warm-up)");
});
