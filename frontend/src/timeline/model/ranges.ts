/** Time ranges: zoom, shift, clamp. */

import type { Meta, Step } from "../../api/timeline_types.ts";
import type { Range } from "./url_codec.ts";

/** The least time that is shown: below it there is nothing more to see. */
export const SHORTEST_NS = 40;

/** The margin at the ends of the recording, as a share of it. */
const MARGIN = 0.02;

/** The range held within the whole and a little more, and no shorter than makes sense. */
export function clampRange({ from, to }: Range, whole: Range): Range {
  const margin = Math.max(SHORTEST_NS, (whole.to - whole.from) * MARGIN);
  const first = whole.from - margin, last = whole.to + margin;
  const length = Math.min(Math.max(to - from, SHORTEST_NS), last - first);
  const start = Math.min(Math.max((from + to - length) / 2, first), last - length);
  return { from: start, to: start + length };
}

/** The range longer or shorter by a factor; the time `around` stays where it is. */
export const zoomRange = ({ from, to }: Range, factor: number, around: number): Range => ({
  from: around - (around - from) * factor,
  to: around + (to - around) * factor,
});

export const shiftRange = ({ from, to }: Range, by: number): Range => ({ from: from + by, to: to + by });

/** The range shifted, at most until it comes to an end of the whole. */
export const shiftWithin = (range: Range, by: number, whole: Range): Range =>
  shiftRange(
    range,
    by > 0 ? Math.min(by, Math.max(0, whole.to - range.to)) : Math.max(by, Math.min(0, whole.from - range.from)),
  );

/** The range with some room at both sides. */
export const padRange = ({ from, to }: Range, share = 0.04): Range => {
  const room = Math.max((to - from) * share, SHORTEST_NS / 4);
  return { from: from - room, to: to + room };
};

/** Between two ranges, `part` of the way; equal parts of the way look alike, however far the zoom goes. */
export function interpolateRange(a: Range, b: Range, part: number): Range {
  const length = Math.exp(Math.log(a.to - a.from) * (1 - part) + Math.log(b.to - b.from) * part);
  const shrinks = (b.to - b.from) / (a.to - a.from);
  const progress = Math.abs(shrinks - 1) < 1e-6 ? part : (length / (a.to - a.from) - 1) / (shrinks - 1);
  const middle = (a.from + a.to) / 2 + ((b.from + b.to) / 2 - (a.from + a.to) / 2) * progress;
  return { from: middle - length / 2, to: middle + length / 2 };
}

function hasDeviceWork({ window: [first, last], activity: { device } }: Meta, step: Step): boolean {
  if (!device) return false;
  const bin = (time: number) => ((time - first) / Math.max(1, last - first)) * device.length;
  return device.slice(Math.max(0, Math.floor(bin(step.start_ns))), Math.ceil(bin(step.end_ns))).some((share) =>
    share > 0
  );
}

/** The initial range: the first complete step with device work, else the first complete one, else all. */
export function startRange(meta: Meta): Range {
  const [from, to] = meta.window;
  const steps = meta.steps.filter(({ start_ns, end_ns }) => end_ns > start_ns);
  const complete = steps.filter(({ is_complete }) => is_complete);
  const step = complete.find((one) => hasDeviceWork(meta, one)) ?? complete[0] ?? steps[0];
  return padRange(step ? { from: step.start_ns, to: step.end_ns } : { from, to: Math.max(to, from + SHORTEST_NS) });
}

/** A short and a long label: of a server's iteration its phase and batch, and its part unless it is steady. */
export function stepLabels({ name, is_complete, phase, part, batch }: Step): [string, string] {
  const short = phase ? `${phase} ${name}` : `Step ${name}`;
  const remark = part && part !== "steady" ? part : is_complete || part ? "" : "cut";
  return [short, `${short}${batch! > 0 ? `  ·  batch ${batch}` : ""}${remark && ` (${remark})`}`];
}

/** The step that holds a time, or the last one of several; null between steps. */
export const stepOf = (steps: Step[], time: number): Step | null =>
  steps.findLast(({ start_ns, end_ns }) => start_ns <= time && time < end_ns) ?? null;
