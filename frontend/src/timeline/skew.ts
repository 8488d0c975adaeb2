/** How far apart workers begin the same collective. */

import type { Brief } from "./model.ts";

export interface Twin {
  source: string;
  brief: Brief;
}

/** From the first that began to the last, on the common clock. */
export function skewOf(list: Twin[], shiftOf: (source: string) => number): number {
  const starts = list.map(({ source, brief }) => brief.start_ns + shiftOf(source));
  return Math.max(...starts) - Math.min(...starts);
}
