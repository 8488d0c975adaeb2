import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { type FlowStep, flowTargets, isAtTarget, nextTarget } from "../src/timeline/model/flow_targets.ts";
import type { SliceFacts, SliceSummary } from "../src/api/timeline_types.ts";

const summary = (slice: number): SliceSummary => ({
  slice,
  name: `slice ${slice}`,
  category: "Kernel",
  track: 0,
  lane: 0,
  start_ns: slice,
  dur_ns: 1,
});
const numbers = (summaries: SliceSummary[]) => summaries.map(({ slice }) => slice);
const facts = (known: Partial<SliceFacts>) =>
  ({ slice: 5, launched: null, launched_by: null, arrows: [], ...known }) as SliceFacts;
const arrow = (from: number, to: number) => ({ kind: "fwdbwd", from: summary(from), to: summary(to) });

Deno.test("a slice leads to its work, then along its other arrows, to each slice once", () => {
  const launched = { count: 2, device_ns: 2, total_ns: 2, slices: [summary(8), summary(9)] };
  const known = facts({ launched, arrows: [arrow(5, 9), arrow(5, 7), arrow(3, 5)] });
  same(numbers(flowTargets(known, true)), [8, 9, 7]);
  same(numbers(flowTargets(known, false)), [3]);
  same(flowTargets(facts({}), true), []);
});

Deno.test("a slice comes from its call, its operator and along arrows", () => {
  const launched_by = { call: summary(1), op: summary(2) } as SliceFacts["launched_by"];
  same(numbers(flowTargets(facts({ launched_by, arrows: [arrow(1, 5), arrow(4, 5)] }), false)), [1, 2, 4]);
  const unknown = { call: null, op: null } as SliceFacts["launched_by"];
  same(flowTargets(facts({ launched_by: unknown }), false), []);
});

Deno.test("after the last goal comes the first, and before the first the last", () => {
  const flow: FlowStep = { source: "rank0", name: "op", forth: true, targets: [summary(8), summary(9)], at: 0 };
  same([nextTarget(flow, 1).at, nextTarget(flow, -1).at, nextTarget(nextTarget(flow, 1), 1).at], [1, 1, 0]);
  is(isAtTarget(flow, { source: "rank0", slice: 8 }), true);
  is(isAtTarget(flow, { source: "rank1", slice: 8 }), false);
  is(isAtTarget(flow, { source: "rank0", slice: 9 }), false);
});
