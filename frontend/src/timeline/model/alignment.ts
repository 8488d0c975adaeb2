/**
 * How the traces of several workers are aligned: by their clocks, a step, or a collective.
 *
 * Clocks of several machines differ, by milliseconds or more. A collective ends on all of its ranks at about the same
 * time, so its ends are aligned: the time before shows who was late.
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

/** The times to align, each in its worker's own time; null for a worker that has none. */
export type Moments = Readonly<Record<string, number | null>>;

/** The shift that aligns a worker with the main one; null if either has no such time. */
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
