/**
 * The bookmarked areas. The address holds them under `marks`, and under `against` the letter of the one that the
 * chosen area is compared with; what is removed comes back with the browser's "back".
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

/** Whether no letter is left for another mark. */
export const isFull = computed(() => freeLetter(bookmarks.value) === null);

const against = computed(() => address.value.against ?? "");

/** The mark that the chosen area is compared with; null for none, and where that is the area itself. */
export const baseBookmark = computed((): Bookmark | null =>
  bookmarks.value.find(({ letter }) => letter === against.value && letter !== chosenBookmark.value?.letter) ?? null
);

/** Compares with the mark of this letter; with none without one. */
export const compareWith = (letter: string) => go({ against: letter });

/** Chooses a step, and compares it with nothing. */
export const chooseStep = (step: Range) => go({ area: areaText({ ...step, tracks: [] }, main.peek()), against: "" });

/** Chooses a step and compares it, on the same tracks: with the base, else with what was chosen, which becomes a bookmark. */
export function compareStep(step: Range) {
  const own = main.peek(), existing = bookmarks.peek(), chosen = area.peek();
  const base = baseBookmark.peek() ?? (chosen && existing.find((bookmark) => isSameArea(bookmark, chosen)));
  const letter = base?.letter ?? freeLetter(existing);
  const first = base ?? chosen;
  if (!first || !letter) return chooseStep(step);
  const text = areaText({ ...step, tracks: first.tracks }, own);
  if (areaText(first, own) === text) return chooseStep(step);
  const all = base ? existing : [...existing, { ...first, letter }];
  go({ area: text, marks: bookmarksText(all, own), against: letter });
}

/** Chooses an area and bookmarks it; a bookmarked one, and one too many, is chosen only. */
export function addBookmark(chosen: Area) {
  const before = bookmarks.peek(), own = main.peek();
  const letter = before.some((bookmark) => isSameArea(bookmark, chosen)) ? null : freeLetter(before);
  const now = letter ? [...before, { ...chosen, letter }] : before;
  go({ area: areaText(chosen, own), marks: bookmarksText(now, own) });
}

/** Removes a mark; if it is the chosen area, nothing is chosen any more. */
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

/** The area, if it was chosen after the selection: then it is what one means to keep. */
export const latestArea = (): Area | null => (isAreaLatest || !selection.peek() ? area.peek() : null);

/** Begins to follow which of the two is chosen last; returns what ends it. */
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
