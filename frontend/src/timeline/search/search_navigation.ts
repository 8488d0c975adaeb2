/** Navigates from result to result over all shown traces. */

import { effect, signal } from "@preact/signals";
import type { SearchResults } from "../../api/timeline_types.ts";
import type { Failed, Query } from "../../api/types.ts";
import { enqueue } from "../input/command_queue.ts";
import {
  type Candidate,
  type Direction,
  exactParts,
  nearest,
  positionOf,
  type SearchResult,
} from "./search_results.ts";
import { find, jumpTo, search, selection, showSlice } from "../state/selection.ts";
import { type Source, sources, whole } from "../state/sources.ts";
import { loadFrom } from "../state/traces.ts";
import { scrollTarget, viewport } from "../state/viewport_state.ts";

type Search = NonNullable<typeof search.value>;

/** The current result, and its position among all, from 1. */
export const currentResult = signal<(SearchResult & { position: number }) | null>(null);

/** Why the last search step failed. */
export const searchError = signal("");

/** The query to a trace: the neighbor of the current result if that is its own, else the next one in time. */
function queryOf(source: Source, direction: Direction, from: SearchResult | number): Query | null {
  const sign = direction === "next" ? 1 : -1;
  if (typeof from === "number") return { at_ns: String(Math.round(from - source.shift_ns)), direction };
  if (from.source === source.id) return from.place + sign < 0 ? null : { place: String(from.place + sign) };
  const order = sources.peek().map(({ id }) => id);
  const isAhead = sign * (order.indexOf(source.id) - order.indexOf(from.source)) > 0;
  const at = Math.round(from.at - source.shift_ns);
  return { at_ns: String(isAhead ? at - sign : at), direction }; // visits all results that start at one time
}

async function candidateOf(
  source: Source,
  now: Search,
  direction: Direction,
  from: SearchResult | number,
): Promise<Candidate | Failed> {
  const query = queryOf(source, direction, from);
  if (!query) return { result: null, count: 0 };
  const answer = await loadFrom<SearchResults>(source, "timeline/find", { find: now.text, ...query });
  if (answer.state === "failed") return answer;
  const { slice, place, count } = answer;
  if (!slice || place === null) return { result: null, count };
  return { result: { source: source.id, summary: slice, at: slice.start_ns + source.shift_ns, place }, count };
}

async function candidatesFrom(now: Search, direction: Direction, from: SearchResult | number): Promise<Candidate[]> {
  const answers = await Promise.all(sources.peek().map((source) => candidateOf(source, now, direction, from)));
  searchError.value = answers.find((answer): answer is Failed => "code" in answer)?.message ?? "";
  return answers.filter((answer): answer is Candidate => "count" in answer);
}

/** Where a search through the whole recording begins. */
const beginOf = (direction: Direction) => (direction === "next" ? whole.peek().from - 1 : whole.peek().to + 1);

async function step(direction: Direction) {
  const now = search.peek();
  if (!now) return;
  let candidates = await candidatesFrom(now, direction, currentResult.peek() ?? viewport.peek().from);
  if (!nearest(candidates, direction)) candidates = await candidatesFrom(now, direction, beginOf(direction));
  const result = nearest(candidates, direction);
  if (!result || search.peek()?.text !== now.text) return;
  currentResult.value = { ...result, position: positionOf(candidates, direction, result) };
  void jumpTo(result.source, result.summary.slice, result.summary);
}

/** Goes to the next or the previous result; after the last one to the first. */
export const goToResult = (direction: Direction, isRepeat = false) => enqueue(() => step(direction), isRepeat);

/** Scrolls to the first visible result; with `moves`, to the next one in time where none is visible. */
async function reveal(moves: boolean) {
  const now = search.peek(), { from, to } = viewport.peek();
  if (!now) return;
  const visible = nearest(await candidatesFrom(now, "next", from), "next");
  const isVisible = visible !== null && visible.at < to;
  const result = isVisible || !moves ? visible : visible ?? nearest(await candidatesFrom(now, "next", -1), "next");
  if (!result || search.peek()?.text !== now.text) return;
  if (isVisible) scrollTarget.value = result;
  else if (moves) showSlice(result.source, result.summary, {}, "replace");
}

/**
 * Resets the current result when the query changes, and shows a result of a query for a row or for exact values, which
 * came from another page or a list: all would be out of sight otherwise. A typed text leaves the picture as it is.
 */
export function followSearch(): () => void {
  let shown = "", isFirst = true;
  const ends = [
    effect(() => {
      void find.value;
      currentResult.value = null;
      searchError.value = "";
    }),
    effect(() => {
      const query = find.value, text = JSON.stringify(query);
      if (!sources.value.length || text === shown) return;
      shown = text;
      const moves = isFirst && !selection.peek();
      isFirst = false;
      if (query && exactParts(query).length) enqueue(() => reveal(moves));
    }),
  ];
  return () => ends.forEach((end) => end());
}
