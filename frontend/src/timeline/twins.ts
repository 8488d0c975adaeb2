/** The same collective on the other workers: by its number in its group, else the one with as many of its name before. */

import { effect, signal } from "@preact/signals";
import { findOfCollective } from "./finds.ts";
import type { Hits, SliceFacts } from "./model.ts";
import type { Twin } from "./skew.ts";
import { asked, hover, type Source, sourceOf, sources } from "./state.ts";

/** Those of the collective under the pointer, itself among them, in the order of the sources; none of anything else. */
export const twins = signal<Twin[]>([]);

async function hitIn(source: Source, find: string, query: Record<string, string>, stop: AbortSignal) {
  const answer = await asked<Hits>(source, "timeline/find", { find, ...query }, stop);
  return answer.state === "ready" && answer.slice ? answer : null;
}

async function twinsOf(own: Source, facts: SliceFacts, stop: AbortSignal): Promise<Twin[]> {
  const find = JSON.stringify(findOfCollective(facts));
  const first = await hitIn(own, find, { at_ns: String(Math.max(0, facts.start_ns - 1)), direction: "next" }, stop);
  if (first?.place === null || first?.place === undefined) return [];
  const place = String(first.place);
  const hits = await Promise.all(
    sources.peek().map(async (source) => {
      const hit = await hitIn(source, find, { place }, stop);
      return hit?.slice ? [{ source: source.id, brief: hit.slice }] : [];
    }),
  );
  return hits.flat();
}

/** Looks for them while a collective is pointed at; returns what ends it. */
export function followTwins(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    const over = hover.value, own = over && sourceOf(over.source);
    stop.abort();
    stop = new AbortController();
    if (twins.peek().length) twins.value = [];
    const { signal } = stop;
    if (!own || !over.facts || over.category !== "Communication" || sources.peek().length < 2) return;
    void twinsOf(own, over.facts, signal).then((found) => {
      if (!signal.aborted && found.length > 1) twins.value = found;
    });
  });
  return () => {
    stop.abort();
    end();
    twins.value = [];
  };
}
