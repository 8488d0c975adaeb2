/** How far apart workers begin the same collective. */

import type { Find, SliceFacts, SliceSummary } from "../../api/timeline_types.ts";

export interface CollectivePeer {
  source: string;
  summary: SliceSummary;
}

/** From the first that began to the last, on the common clock. */
export function startSpread(list: CollectivePeer[], shiftOf: (source: string) => number): number {
  const starts = list.map(({ source, summary }) => summary.start_ns + shiftOf(source));
  return Math.max(...starts) - Math.min(...starts);
}

/** What finds this collective on every rank: its place among its group's collectives, else its name. */
export function findOfCollective({ name, category, collective }: SliceFacts): Find {
  const { group, nth } = collective ?? {};
  const isNumbered = typeof nth === "number" && typeof group === "string";
  return isNumbered ? { group, nth, category } : { name, category };
}
