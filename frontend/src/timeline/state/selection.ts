/** The selected slice and area, the search, and the hovered slice, with the server's answers. */

import { computed, signal } from "@preact/signals";
import type { Find, SearchAnswer, SliceAnswer, SliceFacts, SliceSummary } from "../../api/timeline_types.ts";
import { type ApiRequest, exactResources, resource } from "../../app/resource.ts";
import type { Address } from "../../app/host.ts";
import { go } from "../../app/router.ts";
import { padRange } from "../model/ranges.ts";
import {
  type Area,
  areaIn,
  areaText,
  type ChosenGap,
  findIn,
  findText,
  gapIn,
  gapToText,
  numberText,
  type Range,
  type Selected,
  selectionIn,
} from "../model/url_codec.ts";
import { sourceOf } from "./sources.ts";
import { addressText, loadFrom, main, reloadIfChanged, requestOf, traceOf, traces } from "./traces.ts";
import { scrollTarget, viewport, zoomToRange } from "./viewport_state.ts";

const texts = {
  slice: addressText("slice"),
  area: addressText("area"),
  find: addressText("find"),
  gap: addressText("gap"),
};

/** A request for the facts of a slice; null if its trace isn't shown. */
function sliceRequest(chosen: Selected | null): ApiRequest | null {
  const from = chosen && traceOf(chosen.source);
  return from ? requestOf(from, "timeline/slice", { slice: String(chosen.slice) }) : null;
}

export const selection = computed((): Selected | null => selectionIn(texts.slice.value, main.value));

const selected = resource<SliceAnswer>(() => sliceRequest(selection.value), { onAnswer: reloadIfChanged });

/** The server's answer about the selected slice; null while nothing is selected. */
export const detail = computed((): SliceAnswer | null => {
  if (!selection.value || !traceOf(selection.value.source)) return null;
  return selected.answer.value ?? { state: "loading", progress: null };
});

export const area = computed((): Area | null => areaIn(texts.area.value, main.value));

/** The slice under the pointer as drawn: its times are as exact as a pixel. */
export interface Hover extends SliceSummary {
  source: string;
  /** How many slices the box stands for. */
  count: number;
}
export const hover = signal<Hover | null>(null);

const HOVER_DELAY_MS = 110;

const hovered = resource<SliceAnswer>(() => sliceRequest(hover.value), {
  delay_ms: HOVER_DELAY_MS,
  onAnswer: reloadIfChanged,
});

/** The facts of the slice under the pointer, once the pointer rests. */
export const hoverFacts = computed((): SliceFacts | null =>
  hovered.answer.value?.state === "ready" ? hovered.answer.value : null
);

export const find = computed((): Find | null => findIn(texts.find.value));

const searches = exactResources<SearchAnswer>((): Record<string, ApiRequest> => {
  const text = findText(find.value);
  const shown = text ? traces.value : [];
  return Object.fromEntries(shown.map((one) => [one.id, requestOf(one, "timeline/find", { find: text })]));
}, { onAnswer: reloadIfChanged });

export interface Search {
  find: Find;
  text: string;
  /** The complete answers of the traces so far. */
  answers: Record<string, SearchAnswer>;
}

/** The search and its results so far; null without one. */
export const search = computed((): Search | null => {
  if (!find.value) return null;
  const complete = Object.entries(searches.answers.value).filter(([, { state }]) => state !== "loading");
  return { find: find.value, text: findText(find.value), answers: Object.fromEntries(complete) };
});

/** Selects a slice where it is; nothing without one. */
export const select = (chosen: Selected | null) =>
  go({ slice: chosen ? numberText(chosen.source, chosen.slice, main.value) : "", gap: "" });

/** The idle gap that was clicked. */
export const selectedGap = computed((): ChosenGap | null => gapIn(texts.gap.value, main.value));

/** Selects a gap and opens the panel that explains it. */
export const selectGap = (chosen: ChosenGap) =>
  go({ slice: "", area: "", gap: gapToText(chosen, main.value), panel: "gaps" });

/** Selects an area; nothing without one. */
export const setArea = (chosen: Area | null) => go({ area: chosen ? areaText(chosen, main.value) : "" });

/** Searches all shown traces; null ends the search. */
export const setFind = (next: Find | null) => go({ find: findText(next) });

/** Selects a slice and scrolls to it. */
export async function jumpTo(source: string, slice: number, loaded?: SliceSummary) {
  const from = sourceOf(source);
  if (!from) return;
  const summary = loaded ?? await loadFrom<SliceFacts>(from, "timeline/slice", { slice: String(slice) });
  if ("state" in summary && summary.state === "failed") return select({ source, slice });
  showSlice(source, summary as SliceSummary, { slice: numberText(source, slice, main.value) }, "push");
}

/** Scrolls to a slice, along both axes. */
export function showSlice(source: string, summary: SliceSummary, changes: Address, how: "push" | "replace") {
  const from = sourceOf(source);
  if (!from) return;
  const start = summary.start_ns + from.shift_ns;
  scrollTarget.value = { source, summary };
  zoomToRange(rangeAround(start, start + summary.dur_ns, viewport.peek()), changes, how);
}

/** The range that shows a slice well: unchanged if the slice is visible and legible, else moved, else zoomed. */
function rangeAround(start: number, end: number, { from, to }: Range): Range {
  const length = to - from, share = (end - start) / length;
  const isLegible = share > 0.02 && share < 0.9;
  if (isLegible && start > from + 0.02 * length && end < to - 0.02 * length) return { from, to };
  if (share >= 0.9) return padRange({ from: start, to: end }, 0.1);
  const middle = (start + end) / 2;
  const next = isLegible ? length : Math.max((end - start) * 8, 2000);
  return { from: middle - next / 2, to: middle + next / 2 };
}

/** Starts loading the selection, the hovered slice and the search; returns a function that stops. */
export function startSelection(): () => void {
  const ends = [selected.start(), hovered.start(), searches.start()];
  return () => {
    for (const end of ends) end();
    hover.value = null;
  };
}
