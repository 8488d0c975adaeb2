/** Where the labels of kept marks stand side by side above the tracks. */

export const LONG = 104; // pixels of a label with its length, and of one without
export const SHORT = 42;
const APART = 2;

/** A mark's edges in pixels. */
export interface Edges {
  letter: string;
  left: number;
  right: number;
}
export interface LabelPlace {
  letter: string;
  left: number;
  /** Whether there is no room for more than its letter. */
  isShort: boolean;
}

/** The labels of the marks in sight from the left: each where its mark begins, or as near to it as the others leave room. */
export function labelPlaces(marks: Edges[], width: number): LabelPlace[] {
  const seen = marks.filter(({ left, right }) => right >= 0 && left <= width).sort((a, b) => a.left - b.left);
  const lefts: number[] = [];
  seen.forEach((mark, i) => (lefts[i] = Math.max(0, mark.left, i ? lefts[i - 1]! + SHORT + APART : 0)));
  for (let i = seen.length - 1, end = width; i >= 0; end = lefts[i]! - APART, i--) {
    lefts[i] = Math.min(lefts[i]!, end - SHORT);
  }
  return seen.map(({ letter }, i) => {
    const end = i + 1 < seen.length ? lefts[i + 1]! - APART : width;
    return { letter, left: lefts[i]!, isShort: end - lefts[i]! < LONG };
  });
}
