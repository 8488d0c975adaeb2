/** The alignment in the address: the times of the workers that are put above each other. */

import { computed, effect, signal } from "@preact/signals";
import type { SearchAnswer } from "../../api/timeline_types.ts";
import { type ApiRequest, exactResources } from "../../app/resource.ts";
import { go } from "../../app/router.ts";
import {
  type Alignment,
  alignmentIn,
  alignmentText,
  type Moments,
  shiftBetween,
  stepStart,
} from "../model/alignment.ts";
import { addressText, main, reloadIfChanged, requestOf, traces } from "./traces.ts";

const text = addressText("align");

export const alignment = computed((): Alignment => alignmentIn(text.value));

export const alignBy = (next: Alignment) => go({ align: alignmentText(next) }, "push");

const collectives = exactResources<SearchAnswer>((): Record<string, ApiRequest> => {
  const { value } = alignment;
  if (value.by !== "collective" || traces.value.length < 2) return {};
  const query = { find: JSON.stringify(value.find), place: String(value.before) };
  return Object.fromEntries(traces.value.map((one) => [one.id, requestOf(one, "timeline/find", query)]));
}, { onAnswer: reloadIfChanged });

/** The end of a collective in the trace's own time; null if it has none, undefined while loading. */
function endOf(answer: SearchAnswer | undefined): number | null | undefined {
  if (!answer || answer.state === "loading") return undefined;
  return answer.state === "ready" && answer.slice ? answer.slice.start_ns + answer.slice.dur_ns : null;
}

/** The times to align of all traces; null while some are loading. */
const complete = computed((): Moments | null => {
  const { value } = alignment;
  if (value.by === "clock" || traces.value.length < 2) return {};
  const entries = traces.value.map(({ id, meta }) =>
    [id, value.by === "step" ? stepStart(meta.steps, value.step) : endOf(collectives.answers.value[id])] as const
  );
  return entries.some(([, moment]) => moment === undefined) ? null : Object.fromEntries(entries) as Moments;
});

export const isAligning = computed(() => complete.value === null);

/** The times that are aligned instead of the clocks; the previous ones stay until all new ones are loaded. */
export const moments = signal<Moments>({});

/** The workers without such a time, which stay where their clock puts them. */
export const unaligned = computed((): string[] =>
  Object.keys(moments.value).filter((worker) => shiftBetween(moments.value, worker, main.value) === null)
);

export function startAlignment(): () => void {
  const ends = [
    collectives.start(),
    effect(() => {
      if (complete.value) moments.value = complete.value;
    }),
  ];
  return () => {
    for (const end of ends) end();
    moments.value = {};
  };
}
