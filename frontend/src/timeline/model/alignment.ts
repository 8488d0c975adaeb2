/**
 * What makes the traces of several workers line up: their clocks, a step, or a collective.
 *
 * Clocks of several machines differ, by milliseconds or more. A collective ends on all of its ranks at about the same
 * time, so its end is where they are put together: what is seen before is who came late.
 */

import type { Find, Step } from "../../api/timeline_types.ts";

export type Alignment =
  | { by: "clock" }
  | { by: "step"; step: string }
  /** The slice of `find` that comes after `before` others. */
  | { by: "collective"; find: Find; before: number };

const CLOCK: Alignment = { by: "clock" };

export const alignmentText = (align: Alignment): string => (align.by === "clock" ? "" : JSON.stringify(align));

/** The alignment that the address spells; by clock where it can't be read. */
export function alignmentIn(text: string): Alignment {
  try {
    const { by, step, find, before } = JSON.parse(text);
    if (by === "step" && typeof step === "string") return { by, step };
    const isFind = typeof find === "object" && find !== null && !Array.isArray(find);
    if (by === "collective" && isFind && Number.isInteger(before) && before >= 0) return { by, find, before };
  } catch {
    // not ours
  }
  return CLOCK;
}

/** The moments, in each worker's own time, that are to lie at the same time; null for a worker that has none. */
export type Moments = Readonly<Record<string, number | null>>;

/** What is added to a worker's times so that its moment lies on that of the main one; null if either has none. */
export function shiftBetween(moments: Moments, worker: string, main: string): number | null {
  const own = moments[worker] ?? null, other = moments[main] ?? null;
  return own === null || other === null ? null : other - own;
}

/** Where a step begins; null if there is no such step. */
export const stepStart = (steps: Step[], name: string): number | null =>
  steps.find((step) => step.name === name)?.start_ns ?? null;

/** The steps that all of some workers have, by the order of the first. */
export const commonSteps = (steps: Step[][]): string[] =>
  (steps[0] ?? []).map(({ name }) => name).filter((name) =>
    steps.every((others) => others.some((step) => step.name === name))
  );
