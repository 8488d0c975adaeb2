/**
 * The critical paths over the shown workers, by the address: `critical=1` for each worker's own,
 * `critical=ranks` for the one across all ranks of the run.
 */

import { computed } from "@preact/signals";
import type { CrossRankSegment, PathAnswer, PathSegment, SharesAnswer } from "../../api/timeline_types.ts";
import { type ApiRequest, resources } from "../../app/resource.ts";
import { address, go } from "../../app/router.ts";
import type { Range } from "../model/url_codec.ts";
import { type Source, sourceOf, sources } from "./sources.ts";
import { main, reloadIfChanged, requestOf, shownWorkers } from "./traces.ts";
import { settled } from "./viewport_state.ts";

/** How far each request goes beyond the visible range, as a share of it: room to move without a new request. */
const MARGIN = 0.5;

/** Which path is drawn. */
export type PathKind = "none" | "own" | "across";
const ADDRESS_VALUES: Record<PathKind, string> = { none: "", own: "1", across: "ranks" };

export const pathKind = computed((): PathKind =>
  (Object.keys(ADDRESS_VALUES) as PathKind[]).find((kind) => ADDRESS_VALUES[kind] === (address.value.critical ?? "")) ??
    "none"
);
export const showPath = (kind: PathKind) => go({ critical: ADDRESS_VALUES[kind] });

/** Which paths there are to choose from: one across ranks once several workers are shown, or it is drawn already. */
export const pathKinds = computed((): PathKind[] => {
  const hasAcross = shownWorkers.value.length > 1 || pathKind.value === "across";
  return ["none", "own", ...(hasAcross ? ["across" as const] : [])];
});

/** Switches to the next kind of path, and after the last one to none. */
export function cyclePath() {
  const kinds = pathKinds.peek();
  showPath(kinds[(kinds.indexOf(pathKind.peek()) + 1) % kinds.length]!);
}

const rangeOn = ({ shift_ns }: Source, { from, to }: Range) => ({
  from_ns: String(Math.floor(from - shift_ns)),
  to_ns: String(Math.ceil(to - shift_ns)),
});

const SHARES = "shares";

/** Requested first: it needs the summaries of all recordings, and reports their progress. */
const sharesAnswers = resources<SharesAnswer>((): Record<string, ApiRequest | null> => {
  if (pathKind.value !== "across") return {};
  const own = sourceOf(main.value);
  return { [SHARES]: own ? requestOf(own, "timeline/path_shares", rangeOn(own, settled.value)) : null };
});

/** How much of the path across ranks lies on each worker in the visible range; null while loading. */
export const shares = computed((): SharesAnswer | null => sharesAnswers.answers.value[SHARES] ?? null);

/** A request for the part of the path on a source. */
function pathRequest(source: Source): ApiRequest {
  const { from, to } = settled.value, room = (to - from) * MARGIN;
  const range = rangeOn(source, { from: from - room, to: to + room });
  const own = sourceOf(main.value);
  if (pathKind.value !== "across" || !own) return requestOf(source, "timeline/path", range);
  const query = { ...range, main_worker: own.place.worker, main_span: own.place.span };
  return requestOf(source, "timeline/path_across_ranks", query);
}

const nameOf = (id: string) => `${pathKind.value} ${id}`;

const answers = resources<PathAnswer<PathSegment | CrossRankSegment>>(() => {
  const isRequested = pathKind.value === "own" || shares.value?.state === "ready";
  const shown = pathKind.value === "none" ? [] : sources.value;
  return Object.fromEntries(shown.map((source) => [nameOf(source.id), isRequested ? pathRequest(source) : null]));
}, { keepsReady: true, onAnswer: reloadIfChanged });

/** The visible segments by source; null while loading. */
export const paths = computed((): Record<string, (PathSegment | CrossRankSegment)[] | null> => {
  const shown = pathKind.value === "none" ? [] : sources.value;
  return Object.fromEntries(shown.map(({ id }) => {
    const answer = answers.answers.value[nameOf(id)];
    return [id, answer?.state === "ready" ? answer.pieces : answer?.state === "failed" ? [] : null];
  }));
});

/** The errors by source. */
export const pathFailures = computed((): Record<string, string> => {
  const all = sources.value.map(({ id }) => [id, answers.answers.value[nameOf(id)]] as const);
  return Object.fromEntries(all.flatMap(([id, answer]) => answer?.state === "failed" ? [[id, answer.message]] : []));
});

/** Starts loading the paths of the visible range; returns a function that stops. */
export function startPaths(): () => void {
  const ends = [sharesAnswers.start(), answers.start()];
  return () => ends.forEach((end) => end());
}

/** The segments of the drawn path on a slice, longest first. */
export function piecesOn(source: string, slice: number): (PathSegment | CrossRankSegment)[] {
  const pieces = (paths.value[source] ?? []).filter((piece) => piece.slice?.slice === slice);
  return pieces.sort((a, b) => b.to_ns - b.from_ns - (a.to_ns - a.from_ns));
}
