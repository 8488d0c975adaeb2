/** The spread of the starts of one collective over workers. */

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

/** A query for this collective on every rank: by its number in its group, else by its name. */
export function findOfCollective({ name, category, collective }: SliceFacts): Find {
  const { group, nth } = collective ?? {};
  const isNumbered = typeof nth === "number" && typeof group === "string";
  return isNumbered ? { group, nth, category } : { name, category };
}
