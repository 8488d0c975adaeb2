/** The colors of lines of the program that allocated memory: those of the bands over time, in all pictures of a page. */

import { signal } from "@preact/signals";

const fill = (color: string, percent: number) => `color-mix(in srgb, var(--${color}) ${percent}%, var(--tile))`;

/** Of the lines with the most memory over time. */
export const FILLS = ["kernel", "memcpy", "communication", "runtime", "cpu-exec", "dataloader"].map((name) =>
  fill(name, 60)
);
/** Of all others. */
export const OTHER = fill("other", 90);
/** The levels behind bands, the highest first. */
export const BEHIND = [fill("other", 22), fill("other", 60)];

/** The lines in the order of their memory over time, where bands are shown. */
export const placeOrder = signal<string[]>([]);

/** The color of a line. */
export const placeColor = (place: string): string => FILLS[placeOrder.value.indexOf(place)] ?? OTHER;
