/**
 * The traces on the common clock: that of the trace that the page is about.
 *
 * Times in the timeline's state are ns on that clock. A source's own times plus its `shift_ns` are on it.
 */

import { computed } from "@preact/signals";
import type { Step } from "../../api/timeline_types.ts";
import { shiftBetween } from "../model/alignment.ts";
import { clockShift } from "../model/clocks.ts";
import type { Range } from "../model/url_codec.ts";
import { moments } from "./alignment.ts";
import { clocks } from "./clocks.ts";
import { main, type Trace, traceOf, traces } from "./traces.ts";

export interface Source extends Trace {
  /** Added to its times to be on the common clock. */
  shift_ns: number;
}

export const sources = computed((): Source[] => {
  const own = traceOf(main.value)?.meta;
  if (!own) return [];
  return traces.value.map((one) => {
    const { id, meta } = one;
    const shift_ns = shiftBetween(moments.value, id, main.value) ??
      clockShift(meta, own, clocks.value[id], clocks.value[main.value]);
    return { ...one, shift_ns };
  });
});

export const sourceOf = (id: string): Source | undefined => sources.value.find((source) => source.id === id);

/** All the time that there is. */
export const whole = computed((): Range => {
  const ends = sources.value.map(({ meta, shift_ns }) => meta.window.map((time) => time + shift_ns));
  if (!ends.length) return { from: 0, to: 1 };
  const from = Math.min(...ends.map(([first]) => first!));
  return { from, to: Math.max(from + 1, ...ends.map(([, last]) => last!)) };
});

/** The steps of the main trace. */
export const steps = computed((): Step[] => traceOf(main.value)?.meta.steps ?? []);
