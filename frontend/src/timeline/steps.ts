/** Where in the steps of a trace a time is. */

import type { Step } from "./model.ts";

/** The step that holds a time, or the last one of several; null between steps. */
export const stepOf = (steps: Step[], time: number): Step | null =>
  steps.findLast(({ start_ns, end_ns }) => start_ns <= time && time < end_ns) ?? null;
