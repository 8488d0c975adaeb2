/** The targets of a slice's arrows, and which one is current. */

import type { SliceFacts, SliceSummary } from "../../api/timeline_types.ts";

/** The targets of a slice's arrows, forward or back, and the current one. */
export interface FlowStep {
  /** The worker that they are of. */
  source: string;
  /** The name of the slice whose arrows they are. */
  name: string;
  forth: boolean;
  targets: SliceSummary[];
  at: number;
}

/** The slices that a slice caused, or that caused it: its work or its launch first, each once. */
export function flowTargets({ slice, launched, launched_by, arrows }: SliceFacts, forth: boolean): SliceSummary[] {
  const drawn = arrows.filter(({ from, to }) => (forth ? from : to).slice === slice).map(({ from, to }) =>
    forth ? to : from
  );
  const work = forth ? launched?.slices ?? [] : [launched_by?.call, launched_by?.op];
  const targets = new Map<number, SliceSummary>();
  for (const target of [...work, ...drawn]) {
    if (target && target.slice !== slice && !targets.has(target.slice)) targets.set(target.slice, target);
  }
  return [...targets.values()];
}

/** Whether a slice is the current target. */
export const isAtTarget = ({ source, targets, at }: FlowStep, chosen: { source: string; slice: number }): boolean =>
  source === chosen.source && targets[at]?.slice === chosen.slice;

/** The next or previous target; after the last comes the first. */
export const nextTarget = (flow: FlowStep, by: 1 | -1): FlowStep => ({
  ...flow,
  at: (flow.at + by + flow.targets.length) % flow.targets.length,
});
