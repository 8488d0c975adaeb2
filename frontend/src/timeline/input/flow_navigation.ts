/** Follows the arrows of the selection, and cycles through several targets. */

import { computed, signal } from "@preact/signals";
import { waitForSelection } from "./command_queue.ts";
import { type FlowStep, flowTargets, isAtTarget, nextTarget } from "../model/flow_targets.ts";
import { detail, jumpTo, selection } from "../state/selection.ts";

const last = signal<FlowStep | null>(null);

/** The arrows that were followed to the selection; null if it was selected otherwise. */
export const currentFlow = computed((): FlowStep | null => {
  const chosen = selection.value;
  return last.value && chosen && isAtTarget(last.value, chosen) ? last.value : null;
});

function follow(next: FlowStep) {
  const target = next.targets[next.at]!;
  last.value = next;
  void jumpTo(next.source, target.slice, target);
}

/** Follows the selection's arrows forward or back; where there is none, goes to the next target of the arrow before. */
export async function followFlow(forth: boolean) {
  await waitForSelection();
  const chosen = selection.peek(), facts = detail.peek();
  if (!chosen || facts?.state !== "ready") return;
  const targets = flowTargets(facts, forth), before = currentFlow.peek();
  if (targets.length) follow({ source: chosen.source, name: facts.name, forth, targets, at: 0 });
  else if (before?.forth === forth) follow(nextTarget(before, 1));
}

/** Goes to another target of the arrow that was followed last. */
export function cycleTargets(by: 1 | -1) {
  const before = currentFlow.peek();
  if (before) follow(nextTarget(before, by));
}
