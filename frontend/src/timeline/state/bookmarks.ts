/**
 * The bookmarked areas. The address holds them under `marks`, and under `against` the letter of the bookmark that the
 * selected area is compared with; the browser's "back" restores removed ones.
 */

import { computed, effect } from "@preact/signals";
import { address, go } from "../../app/router.ts";
import {
  type Area,
  areaText,
  type Bookmark,
  bookmarksIn,
  bookmarksText,
  freeLetter,
  isSameArea,
  type Range,
} from "../model/url_codec.ts";
import { area, selection } from "./selection.ts";
import { main } from "./traces.ts";

const text = computed(() => address.value.marks ?? "");

export const bookmarks = computed((): Bookmark[] => bookmarksIn(text.value, main.value));

/** The bookmark of the chosen area; null if it has none. */
export const chosenBookmark = computed((): Bookmark | null => {
  const chosen = area.value;
  return (chosen && bookmarks.value.find((bookmark) => isSameArea(bookmark, chosen))) ?? null;
});

/** Whether all letters are used. */
export const isFull = computed(() => freeLetter(bookmarks.value) === null);

const against = computed(() => address.value.against ?? "");

/** The bookmark that the selected area is compared with; null for none, and if it is the area itself. */
export const baseBookmark = computed((): Bookmark | null =>
  bookmarks.value.find(({ letter }) => letter === against.value && letter !== chosenBookmark.value?.letter) ?? null
);

/** Compares with the bookmark of this letter; an empty letter ends the comparison. */
export const compareWith = (letter: string) => go({ against: letter });

/** Selects a step, and ends any comparison. */
export const chooseStep = (step: Range) => go({ area: areaText({ ...step, tracks: [] }, main.peek()), against: "" });

/** Selects a step and compares it on the same tracks: with the base, else with the last area, which becomes a bookmark. */
export function compareStep(step: Range) {
  const own = main.peek(), existing = bookmarks.peek(), chosen = area.peek();
  const base = baseBookmark.peek() ?? (chosen && existing.find((bookmark) => isSameArea(bookmark, chosen)));
  const letter = base?.letter ?? freeLetter(existing);
  const first = base ?? chosen;
  if (!first || !letter) return chooseStep(step);
  const text = areaText({ ...step, tracks: first.tracks }, own);
  if (areaText(first, own) === text) return chooseStep(step);
  const all = base ? existing : [...existing, { ...first, letter, name: "" }];
  go({ area: text, marks: bookmarksText(all, own), against: letter });
}

/** Selects an area and bookmarks it, unless it is bookmarked already or all letters are used. */
export function addBookmark(chosen: Area) {
  const before = bookmarks.peek(), own = main.peek();
  const letter = before.some((bookmark) => isSameArea(bookmark, chosen)) ? null : freeLetter(before);
  const now = letter ? [...before, { ...chosen, letter, name: "" }] : before;
  go({ area: areaText(chosen, own), marks: bookmarksText(now, own) });
}

/** Names a bookmark; an empty name removes its name. */
export const nameBookmark = ({ letter }: Bookmark, name: string) =>
  go({
    marks: bookmarksText(
      bookmarks.peek().map((one) => one.letter === letter ? { ...one, name: name.trim() } : one),
      main.peek(),
    ),
  });

/** A bookmark's letter with its name. */
export const titleOf = ({ letter, name }: Bookmark): string => name ? `${letter} ${name}` : letter;

/** Removes a bookmark; clears the area if it is the selected one. */
export function removeBookmark({ letter }: Bookmark) {
  const rest = bookmarks.peek().filter((bookmark) => bookmark.letter !== letter);
  const isChosen = chosenBookmark.peek()?.letter === letter;
  const isBase = against.peek() === letter;
  go(
    { marks: bookmarksText(rest, main.peek()), ...(isChosen && { area: "" }), ...(isBase && { against: "" }) },
    "push",
  );
}

export const removeAllBookmarks = () =>
  go({ marks: "", against: "", ...(chosenBookmark.peek() && { area: "" }) }, "push");

let isAreaLatest = false;

/** The area, if it was selected after the slice: then it is the one to bookmark. */
export const latestArea = (): Area | null => (isAreaLatest || !selection.peek() ? area.peek() : null);

/** Starts tracking which of the two was selected last; returns a function that stops. */
export function followLatest(): () => void {
  const ends = [
    effect(() => {
      if (selection.value) isAreaLatest = false;
    }),
    effect(() => {
      if (area.value) isAreaLatest = true;
    }),
  ];
  return () => ends.forEach((end) => end());
}
