/** Follows the alignment that the address names: finds each worker's moment, and shifts the workers by it. */

import { computed, effect, signal, untracked } from "@preact/signals";
import { address, go } from "../state.ts";
import { type Align, alignIn, alignText, type Anchor, shiftsOf, stepStart } from "./align.ts";
import type { Hits } from "./model.ts";
import { asked, main, shifts, type Source, sources } from "./state.ts";

const text = computed(() => address.value.align ?? "");

export const align = computed((): Align => alignIn(text.value));

export const alignBy = (wish: Align) => go({ align: alignText(wish) }, "push");

/** The workers that have no such moment: they stay where their clock puts them. */
export const unaligned = signal<string[]>([]);

/** The moment of one trace, in its own time. */
async function momentIn(source: Source, wish: Align, stop: AbortSignal): Promise<number | null> {
  if (wish.by === "step") return stepStart(source.meta.steps, wish.step);
  if (wish.by === "clock") return null;
  const query = { find: JSON.stringify(wish.find), place: String(wish.before) };
  const answer = await asked<Hits>(source, "timeline/find", query, stop);
  return answer.state === "ready" && answer.slice ? answer.slice.start_ns + answer.slice.dur_ns : null;
}

/** What decides where the workers are; a shift changes nothing of it. */
const question = computed(() =>
  JSON.stringify([text.value, sources.value.map(({ id, stamp, place }) => [id, stamp, place]), main.value])
);

const same = (a: Record<string, number>, b: Record<string, number>) => JSON.stringify(a) === JSON.stringify(b);

/** Keeps the workers aligned until it is told to stop. */
export function followAlign(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    void question.value;
    const wish = align.value;
    stop.abort();
    const { signal } = stop = new AbortController();
    const shown = untracked(() => sources.value);
    const isAlone = shown.length < 2 || wish.by === "clock";
    const moments = isAlone ? [] : shown.map((source) => momentIn(source, wish, signal));
    void Promise.all(moments).then((found) => {
      if (signal.aborted) return;
      const anchors = found.map((at, i): Anchor => {
        const { id, shift_ns } = shown[i]!;
        return { worker: id, clock: shift_ns - (shifts.peek()[id] ?? 0), at };
      });
      const next = shiftsOf(anchors, main.peek());
      unaligned.value = anchors.filter(({ worker }) => !(worker in next)).map(({ worker }) => worker);
      if (!same(next, shifts.peek())) shifts.value = next;
    });
  });
  return () => {
    stop.abort();
    end();
    shifts.value = {};
  };
}
