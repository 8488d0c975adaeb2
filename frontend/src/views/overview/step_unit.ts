/** The unit of an overview: the average step, a single step, or a recording without steps. */

import { decimal, plural } from "../../format/numbers.ts";

export interface Unit {
  /** Whether no steps were marked, so that the whole recording counts as one. */
  isWhole: boolean;
  /** As a heading: "Average step". */
  name: string;
  /** Within a sentence: "the average step". */
  words: string;
  /** Which steps count, where there are several: "6 complete steps". */
  counted: string;
}

/** The unit of a trace with these steps; the complete ones count, or all if none is. Iterations have phases. */
export function unitOf(steps: string[], isComplete: boolean[], phases: unknown[] = []): Unit {
  const [noun, whole, capital] = phases.some(Boolean)
    ? ["iteration", "steady", "Iteration"]
    : ["step", "complete", "Step"];
  if (steps.length === 1 && steps[0] === "all") {
    return { isWhole: true, name: "Whole recording", words: "the recording", counted: "" };
  }
  const complete = isComplete.filter(Boolean).length;
  const count = complete || steps.length;
  if (count === 1) {
    const name = steps[Math.max(0, isComplete.indexOf(true))];
    return { isWhole: false, name: `${capital} ${name}`, words: `${noun} ${name}`, counted: "" };
  }
  const counted = complete ? plural(complete, `${whole} ${noun}`) : `${decimal(count)} ${noun}s, none ${whole}`;
  return { isWhole: false, name: `Average ${noun}`, words: `the average ${noun}`, counted };
}
