/** The unit of an overview: the average step, or a server's iteration, a single one, or a recording without steps. */

import { decimal, plural } from "../../format/numbers.ts";
import { capitalized, stepInWords, stepNoun } from "../../format/steps.ts";

export interface Unit {
  /** Whether no steps were marked, so that the whole recording counts as one. */
  isWhole: boolean;
  /** "step", "iteration", or "recording". */
  noun: string;
  /** One that counts: "complete step". */
  one: string;
  /** As a heading: "Average step". */
  name: string;
  /** Within a sentence: "the average step". */
  words: string;
  /** Which steps count, where there are several: "6 complete steps". */
  counted: string;
}

/** The unit of savings where recording slows steps. */
export const withoutProfiler = ({ noun, ...unit }: Unit): Unit => ({
  ...unit,
  noun: `${noun} without the profiler`,
  words: `${stepInWords(noun)} without the profiler`,
});

/** The unit of a trace with these steps; the complete ones count, or all if none is. */
export function unitOf(steps: string[], isComplete: boolean[], phases?: unknown[]): Unit {
  const isWhole = steps.length === 1 && steps[0] === "all";
  const noun = isWhole ? "recording" : stepNoun(phases);
  const whole = noun === "iteration" ? "steady" : "complete";
  const unit = { isWhole, noun, one: `${whole} ${noun}` };
  if (isWhole) return { ...unit, name: "Whole recording", words: "the recording", counted: "" };
  const complete = isComplete.filter(Boolean).length;
  const count = complete || steps.length;
  if (count === 1) {
    const name = steps[Math.max(0, isComplete.indexOf(true))];
    return { ...unit, name: `${capitalized(noun)} ${name}`, words: `${noun} ${name}`, counted: "" };
  }
  const counted = complete ? plural(complete, unit.one) : `${decimal(count)} ${noun}s, none ${whole}`;
  return { ...unit, name: `Average ${noun}`, words: `the average ${noun}`, counted };
}
