/** The same collective on the other workers: by its number in its group, else the one with as many of its name before. */

import { computed } from "@preact/signals";
import type { SearchAnswer } from "../../api/timeline_types.ts";
import { type ApiRequest, exactResources, resource } from "../../app/resource.ts";
import { type CollectivePeer, findOfCollective } from "../model/collective_peers.ts";
import { hover, hoverFacts } from "./selection.ts";
import { reloadIfChanged, requestOf, traceOf, traces } from "./traces.ts";

const ROUTE = "timeline/find";

/** The query for the collective under the pointer; empty over anything else. */
const find = computed(() => {
  const isCollective = hover.value?.category === "Communication" && hoverFacts.value && traces.value.length > 1;
  return isCollective ? JSON.stringify(findOfCollective(hoverFacts.value!)) : "";
});

/** Its position among the results of its own trace. */
const own = resource<SearchAnswer>(() => {
  const from = find.value && traceOf(hover.value!.source);
  if (!from) return null;
  const at_ns = String(Math.max(0, hoverFacts.value!.start_ns - 1));
  return requestOf(from, ROUTE, { find: find.value, at_ns, direction: "next" });
}, { onAnswer: reloadIfChanged });

/** The results at the same position in all traces. */
const matches = exactResources<SearchAnswer>((): Record<string, ApiRequest> => {
  const first = own.answer.value;
  if (first?.state !== "ready" || !first.slice || first.place === null) return {};
  const query = { find: find.value, place: String(first.place) };
  return Object.fromEntries(traces.value.map((one) => [one.id, requestOf(one, ROUTE, query)]));
}, { onAnswer: reloadIfChanged });

/** The peers of the collective under the pointer, itself included, in the order of the traces. */
export const collectivePeers = computed((): CollectivePeer[] => {
  const answers = traces.value.map(({ id }) => [id, matches.answers.value[id]] as const);
  if (answers.some(([, answer]) => !answer || answer.state === "loading")) return [];
  const peers = answers.flatMap(([source, answer]) =>
    answer?.state === "ready" && answer.slice ? [{ source, summary: answer.slice }] : []
  );
  return peers.length > 1 ? peers : [];
});

export function startCollectivePeers(): () => void {
  const ends = [own.start(), matches.start()];
  return () => ends.forEach((end) => end());
}
