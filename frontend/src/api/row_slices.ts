/** The slices that a row of a view stands for: a query that finds them, and their time. See `find` in docs/http_api.md. */

import type { Reference, RowTime, ViewEntry } from "./types.ts";
import type { Value } from "../format/numbers.ts";

/** A query for slices: exact values, words, or the key of a row of a view. */
export type Find = Record<string, Value>;

export interface RowSlices {
  /** Exact values of slices, or words; null where the row names none. */
  find: Find | null;
  /** The time that the row is about, in ns since the recording's origin. */
  range: { from: number; to: number } | null;
  /** For rows about idle gaps: the filter that selects them. */
  gaps?: string;
  /** The critical path to draw, as in the timeline's address. */
  critical?: "1" | "ranks";
  /** The worker whose recording it is in, if the row has one. */
  worker?: string;
}

type Row = (column: string) => Value;

const MARGIN_NS = 20_000; // around a moment

/** The view and the key of a row, which its events are searched by. */
export const keyOfRow = ({ id, key, takes_steps }: ViewEntry, row: Row, phase: string): Find => ({
  view: id,
  ...(takes_steps && phase && { phase }),
  ...Object.fromEntries(key.map((name) => [name, row(name)])),
});

/** A query for the slices of a row. */
function findOf(entry: ViewEntry, row: Row, phase: string): Find | null {
  const { slices } = entry;
  if (!slices?.are_highlighted) return null;
  return slices.except_kind !== null && row("kind") === slices.except_kind ? null : keyOfRow(entry, row, phase);
}

function rangeOf({ begin, length, end }: RowTime, row: Row): RowSlices["range"] {
  const from = row(begin), duration = length && row(length), to = end && row(end);
  if (typeof from !== "number" || (length && typeof duration !== "number")) return null;
  if (typeof duration === "number") return { from, to: from + duration };
  return typeof to === "number" ? { from, to } : { from: from - MARGIN_NS, to: from + MARGIN_NS };
}

/** What to show in the timeline for a row of a view, or of a phase of a server; null if there is nothing. */
export function slicesOfRow(entry: ViewEntry, row: Row, views: ViewEntry[], phase = ""): RowSlices | null {
  if (entry.reference) return slicesOfReference(entry.reference, row, views);
  const { time, shows_path, scope } = entry;
  const find = findOf(entry, row, phase), range = time && rangeOf(time, row);
  const worker = range && time?.worker ? row(time.worker) : null;
  const critical = shows_path && { critical: scope === "recording" ? "1" as const : "ranks" as const };
  return find || range ? { find, range, ...critical, ...(typeof worker === "string" && { worker }) } : null;
}

/** What to show in the timeline for a row that refers to rows of another view; null if there is nothing. */
export function slicesOfReference(reference: Reference, row: Row, views: ViewEntry[]): RowSlices | null {
  const slices = views.find(({ id }) => id === row(reference.view))?.slices;
  const filter = String(row(reference.filter) ?? "");
  if (slices?.panel) return { find: null, range: null, [slices.panel]: filter };
  if (slices?.category && filter) return { find: { text: filter, category: slices.category }, range: null };
  const category = reference.categories[String(row(reference.rule))];
  return category ? { find: { category }, range: null } : null;
}
