/** The areas that are kept. The address holds them under `marks`; what is removed comes back with the browser's "back". */

import { computed, effect } from "@preact/signals";
import { address, go } from "../state.ts";
import { type Area, areaText, freeLetter, isSameArea, type Mark, marksIn, marksText } from "./places.ts";
import { area, main, selection } from "./state.ts";

const text = computed(() => address.value.marks ?? "");

export const kept = computed((): Mark[] => marksIn(text.value, main.value));

/** The mark that is the chosen area; null if that isn't kept. */
export const chosenMark = computed((): Mark | null => {
  const chosen = area.value;
  return (chosen && kept.value.find((mark) => isSameArea(mark, chosen))) ?? null;
});

/** Whether no letter is left for another mark. */
export const isFull = computed(() => freeLetter(kept.value) === null);

/** Chooses an area and keeps it; one that is kept already, and one too many, is chosen only. */
export function keep(chosen: Area) {
  const before = kept.peek(), own = main.peek();
  const letter = before.some((mark) => isSameArea(mark, chosen)) ? null : freeLetter(before);
  const now = letter ? [...before, { ...chosen, letter }] : before;
  go({ area: areaText(chosen, own), marks: marksText(now, own) });
}

/** Removes a mark; if it is the chosen area, nothing is chosen any more. */
export function remove({ letter }: Mark) {
  const rest = kept.peek().filter((mark) => mark.letter !== letter);
  const isChosen = chosenMark.peek()?.letter === letter;
  go({ marks: marksText(rest, main.peek()), ...(isChosen && { area: "" }) }, "push");
}

export const removeAll = () => go({ marks: "", ...(chosenMark.peek() && { area: "" }) }, "push");

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
