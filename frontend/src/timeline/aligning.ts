/** Follows the alignment that the address names: finds the moments of the workers that are to lie at one time. */

import { computed, effect, signal, untracked } from "@preact/signals";
import { address, go } from "../state.ts";
import { type Align, alignIn, alignText, shiftBetween, stepStart } from "./align.ts";
import type { Hits } from "./model.ts";
import { asked, main, moments, recordings, type Source, sources } from "./state.ts";

const text = computed(() => address.value.align ?? "");

export const align = computed((): Align => alignIn(text.value));

export const alignBy = (wish: Align) => go({ align: alignText(wish) }, "push");

/** The workers that have no such moment, or that of which the main one has none: they stay where their clock puts them. */
export const unaligned = computed((): string[] =>
  Object.keys(moments.value).filter((worker) => shiftBetween(moments.value, worker, main.value) === null)
);

/** Whether moments are looked for. */
export const isAligning = signal(false);

/** The moment of one trace, in its own time. */
async function momentIn(source: Source, wish: Align, stop: AbortSignal): Promise<number | null> {
  if (wish.by === "step") return stepStart(source.meta.steps, wish.step);
  if (wish.by === "clock") return null;
  const query = { find: JSON.stringify(wish.find), place: String(wish.before) };
  const answer = await asked<Hits>(source, "timeline/find", query, stop);
  return answer.state === "ready" && answer.slice ? answer.slice.start_ns + answer.slice.dur_ns : null;
}

/** Keeps the workers aligned until it is told to stop. */
export function followAlign(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    void recordings.value;
    const wish = align.value;
    stop.abort();
    const { signal } = stop = new AbortController();
    const shown = untracked(() => sources.value);
    const aligned = shown.length < 2 || wish.by === "clock" ? [] : shown;
    isAligning.value = aligned.length > 0;
    const told = aligned.map(async (source) => [source.id, await momentIn(source, wish, signal)] as const);
    void Promise.all(told).then((found) => {
      if (signal.aborted) return;
      isAligning.value = false;
      moments.value = Object.fromEntries(found);
    });
  });
  return () => {
    stop.abort();
    end();
    isAligning.value = false;
    moments.value = {};
  };
}
