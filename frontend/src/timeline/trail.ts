/** Goes along the arrows of the selection, and from one of several to the next. */

import { computed, signal } from "@preact/signals";
import { besideOn, goalsOf, isOn, type Trail } from "./goals.ts";
import { detail, jumpTo, selection } from "./state.ts";
import { told } from "./turns.ts";

const last = signal<Trail | null>(null);

/** The trail that led to the selection; null if something else did. */
export const trail = computed((): Trail | null => {
  const chosen = selection.value;
  return last.value && chosen && isOn(last.value, chosen) ? last.value : null;
});

function follow(next: Trail) {
  const goal = next.goals[next.at]!;
  last.value = next;
  void jumpTo(next.source, goal.slice, goal);
}

/** To what the selection led to, or to what led to it; where no arrow goes on, to the next goal of the one before. */
export async function along(forth: boolean) {
  await told();
  const chosen = selection.peek(), known = detail.peek();
  if (!chosen || known?.state !== "ready") return;
  const goals = goalsOf(known, forth), before = trail.peek();
  if (goals.length) follow({ source: chosen.source, name: known.name, forth, goals, at: 0 });
  else if (before?.forth === forth) follow(besideOn(before, 1));
}

/** To another goal of the arrow that was gone along last. */
export function beside(by: 1 | -1) {
  const before = trail.peek();
  if (before) follow(besideOn(before, by));
}
