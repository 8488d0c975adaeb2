/** The usual step: the median of the complete ones, and in which part another one differs most from it. */

import type { Table } from "../api/types.ts";
import { quantity } from "../format/numbers.ts";
import { capitalized, stepNoun } from "../format/steps.ts";
import { CATEGORIES } from "./step_categories.ts";

const FEWEST = 3;
const NOTICEABLE = 0.02; // of the usual step

/** A value with as many below as above it. */
export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b), middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The complete steps; none where there are too few for a usual one, or those of several phases. */
function comparable({ step, is_complete, phase }: Table["data"]): number[] {
  const rows = step!.flatMap((_, row) => is_complete![row] ? [row] : []);
  return rows.length < FEWEST || new Set(rows.map((row) => phase?.[row])).size > 1 ? [] : rows;
}

/** How long the usual step takes; null where none is. */
export function usualStep(data: Table["data"]): number | null {
  const rows = comparable(data);
  return rows.length ? median(rows.map((row) => Number(data.total_ns![row]))) : null;
}

/** Whether steps differ, which one takes longest, and what takes longer in it. */
export function stepsInWords(data: Table["data"]): string {
  const rows = comparable(data), usual = usualStep(data), noun = stepNoun(data.phase);
  if (usual === null) return "";
  const at = (column: string, row: number) => Number(data[column]?.[row] ?? 0);
  const total = (row: number) => at("total_ns", row);
  const longest = rows.reduce((most, row) => total(row) > total(most) ? row : most);
  const more = total(longest) - usual, time = (ns: number) => quantity(ns, "duration");
  const usually = `The usual ${noun} takes ${time(usual)} (median of ${rows.length}).`;
  if (more < NOTICEABLE * usual) return `${usually} None takes noticeably longer.`;
  const parts = CATEGORIES.map(({ name, column }) => ({
    name,
    more: at(column, longest) - median(rows.map((row) => at(column, row))),
  })).sort((a, b) => b.more - a.more);
  const most = parts[0]!, least = parts.at(-1)!, beyond = most.more - more; // if another part takes less time
  const less = -2 * least.more >= beyond ? `, ${least.name} ${time(-least.more)} less` : "";
  const why = 2 * most.more <= more
    ? ""
    : beyond > 0
    ? `: ${most.name} ${time(most.more)} more${less}`
    : `, most of it ${most.name} (+${time(most.more)})`;
  return `${usually} ${capitalized(noun)} ${data.step![longest]} takes ${time(more)} longer${why}.`;
}
