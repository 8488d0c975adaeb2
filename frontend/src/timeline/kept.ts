/**
 * The areas that are kept. The address holds them under `marks`, and under `against` the letter of the one that the
 * chosen area is compared with; what is removed comes back with the browser's "back".
 */

import { computed, effect } from "@preact/signals";
import { address, go } from "../state.ts";
import { type Area, areaText, freeLetter, isSameArea, type Mark, marksIn, marksText, type Range } from "./places.ts";
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

const against = computed(() => address.value.against ?? "");

/** The mark that the chosen area is compared with; null for none, and where that is the area itself. */
export const base = computed((): Mark | null =>
  kept.value.find(({ letter }) => letter === against.value && letter !== chosenMark.value?.letter) ?? null
);

/** Compares with the mark of this letter; with none without one. */
export const compareWith = (letter: string) => go({ against: letter });

/** Chooses a step, and compares it with nothing. */
export const chooseStep = (step: Range) => go({ area: areaText({ ...step, tracks: [] }, main.peek()), against: "" });

/** Chooses a step and compares it, on the same tracks: with the base, else with what was chosen, which is kept for it. */
export function compareStep(step: Range) {
  const own = main.peek(), marks = kept.peek(), chosen = area.peek();
  const known = base.peek() ?? (chosen && marks.find((mark) => isSameArea(mark, chosen)));
  const letter = known?.letter ?? freeLetter(marks);
  const first = known ?? chosen;
  if (!first || !letter) return chooseStep(step);
  const text = areaText({ ...step, tracks: first.tracks }, own);
  if (areaText(first, own) === text) return chooseStep(step);
  const all = known ? marks : [...marks, { ...first, letter }];
  go({ area: text, marks: marksText(all, own), against: letter });
}

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
  const isBase = against.peek() === letter;
  go({ marks: marksText(rest, main.peek()), ...(isChosen && { area: "" }), ...(isBase && { against: "" }) }, "push");
}

export const removeAll = () => go({ marks: "", against: "", ...(chosenMark.peek() && { area: "" }) }, "push");

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
