/** The critical paths of the shown workers, while they are wanted: `critical=1` in the address. */

import { computed, effect, signal, untracked } from "@preact/signals";
import { address, go } from "../state.ts";
import type { PathAnswer, Stretch } from "./model.ts";
import { asked, settled, type Source, sources } from "./state.ts";

/** What is asked for beyond each edge of what is in sight, as a share of it: room to move without a new question. */
const BEYOND = 0.5;

export const isPathShown = computed(() => address.value.critical === "1");
export const turnPath = () => go({ critical: isPathShown.peek() ? "" : "1" });

/** The stretches in sight, by source; null: the answer is on its way. */
export const paths = signal<Record<string, Stretch[] | null>>({});

async function ask({ id, ...source }: Source, from: number, to: number, stop: AbortSignal) {
  const query = { from_ns: String(Math.floor(from - source.shift_ns)), to_ns: String(Math.ceil(to - source.shift_ns)) };
  const answer = await asked<PathAnswer>(source, "timeline/path", query, stop);
  if (!stop.aborted) paths.value = { ...paths.peek(), [id]: answer.state === "ready" ? answer.stretches : [] };
}

/** Keeps the paths of what is in sight; returns what ends it. */
export function followPaths(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    const { from, to } = settled.value;
    const shown = isPathShown.value ? sources.value : [];
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    untracked(() => {
      const known = paths.peek();
      paths.value = Object.fromEntries(shown.map(({ id }) => [id, known[id] ?? null]));
      const room = (to - from) * BEYOND;
      for (const source of shown) void ask(source, from - room, to + room, signal);
    });
  });
  return () => {
    stop.abort();
    end();
    paths.value = {};
  };
}
