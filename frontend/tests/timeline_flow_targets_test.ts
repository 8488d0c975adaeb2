import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { type FlowStep, flowTargets, isAtTarget, nextTarget } from "../src/timeline/model/flow_targets.ts";
import type { Brief, SliceFacts } from "../src/api/timeline_types.ts";

const brief = (slice: number): Brief => ({
  slice,
  name: `slice ${slice}`,
  category: "Kernel",
  track: 0,
  lane: 0,
  start_ns: slice,
  dur_ns: 1,
});
const numbers = (briefs: Brief[]) => briefs.map(({ slice }) => slice);
const facts = (known: Partial<SliceFacts>) =>
  ({ slice: 5, launched: null, launched_by: null, arrows: [], ...known }) as SliceFacts;
const arrow = (from: number, to: number) => ({ kind: "fwdbwd", from: brief(from), to: brief(to) });

Deno.test("a slice leads to its work, then along its other arrows, to each slice once", () => {
  const launched = { count: 2, device_ns: 2, total_ns: 2, slices: [brief(8), brief(9)] };
  const known = facts({ launched, arrows: [arrow(5, 9), arrow(5, 7), arrow(3, 5)] });
  same(numbers(flowTargets(known, true)), [8, 9, 7]);
  same(numbers(flowTargets(known, false)), [3]);
  same(flowTargets(facts({}), true), []);
});

Deno.test("a slice comes from its call, its operator and along arrows", () => {
  const launched_by = { call: brief(1), op: brief(2) } as SliceFacts["launched_by"];
  same(numbers(flowTargets(facts({ launched_by, arrows: [arrow(1, 5), arrow(4, 5)] }), false)), [1, 2, 4]);
  const unknown = { call: null, op: null } as SliceFacts["launched_by"];
  same(flowTargets(facts({ launched_by: unknown }), false), []);
});

Deno.test("after the last goal comes the first, and before the first the last", () => {
  const trail: FlowStep = { source: "rank0", name: "op", forth: true, targets: [brief(8), brief(9)], at: 0 };
  same([nextTarget(trail, 1).at, nextTarget(trail, -1).at, nextTarget(nextTarget(trail, 1), 1).at], [1, 1, 0]);
  is(isAtTarget(trail, { source: "rank0", slice: 8 }), true);
  is(isAtTarget(trail, { source: "rank1", slice: 8 }), false);
  is(isAtTarget(trail, { source: "rank0", slice: 9 }), false);
});
