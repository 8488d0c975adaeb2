/** Where the arrows of a slice lead, and which of several was gone to. */

import type { Brief, SliceFacts } from "./model.ts";

/** Slices to which the arrows of one lead, or from which they come, and which of them was gone to last. */
export interface Trail {
  /** The worker that they are of. */
  source: string;
  /** The name of the slice whose arrows they are. */
  name: string;
  forth: boolean;
  goals: Brief[];
  at: number;
}

/** What a slice led to, or what led to it: its work or its launch first. Each slice is there once. */
export function goalsOf({ slice, launched, launched_by, arrows }: SliceFacts, forth: boolean): Brief[] {
  const drawn = arrows.filter(({ from, to }) => (forth ? from : to).slice === slice).map(({ from, to }) =>
    forth ? to : from
  );
  const work = forth ? launched?.slices ?? [] : [launched_by?.call, launched_by?.op];
  const goals = new Map<number, Brief>();
  for (const goal of [...work, ...drawn]) {
    if (goal && goal.slice !== slice && !goals.has(goal.slice)) goals.set(goal.slice, goal);
  }
  return [...goals.values()];
}

/** Whether a slice is where the trail has led. */
export const isOn = ({ source, goals, at }: Trail, chosen: { source: string; slice: number }): boolean =>
  source === chosen.source && goals[at]?.slice === chosen.slice;

/** The trail at the goal beside the last one; after the last comes the first. */
export const besideOn = (trail: Trail, by: 1 | -1): Trail => ({
  ...trail,
  at: (trail.at + by + trail.goals.length) % trail.goals.length,
});
