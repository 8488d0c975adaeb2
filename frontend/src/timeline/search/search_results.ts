/** What several traces found, as one answer. */

import type { Find, SearchAnswer, SearchResults, SliceSummary } from "../../api/timeline_types.ts";
import { label } from "../../format/numbers.ts";

type Answers = Record<string, SearchAnswer>;

const ready = (answers: Answers): SearchResults[] =>
  Object.values(answers).filter((answer) => answer.state === "ready");

/** How many slices were found so far. */
export const resultCount = (answers: Answers): number => ready(answers).reduce((sum, { count }) => sum + count, 0);

/** The names that were found with their counts in all traces, most first. */
export function resultNames(answers: Answers): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { names } of ready(answers)) {
    for (const [name, count] of names) counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

/** The traces that could not look, with what they say. */
export const failures = (answers: Answers): [source: string, message: string][] =>
  Object.entries(answers).flatMap(([source, answer]) => answer.state === "failed" ? [[source, answer.message]] : []);

export interface SearchResult {
  source: string;
  summary: SliceSummary;
  /** Its start on the common clock. */
  at: number;
  /** How many hits of its own trace lie before it. */
  place: number;
}

export type Direction = "next" | "previous";

/** What one trace says of where the walk goes: its next hit, or none, and how many hits it has. */
export interface Candidate {
  result: SearchResult | null;
  count: number;
}

/** Of one hit of each trace the next: the first one, or the last one for `previous`; traces at one time by their order. */
export function nearest(candidates: Candidate[], direction: Direction): SearchResult | null {
  const isNearer = (a: SearchResult, b: SearchResult | null) =>
    !b || (direction === "next" ? a.at < b.at : a.at >= b.at);
  return candidates.reduce<SearchResult | null>(
    (best, { result }) => (result && isNearer(result, best) ? result : best),
    null,
  );
}

/** Which one of all hits of all traces the nearest is, from 1. */
export function positionOf(candidates: Candidate[], direction: Direction, chosen: SearchResult): number {
  const before = candidates.map(({ result, count }) => {
    if (result === chosen) return result.place;
    if (direction === "next") return result ? result.place : count;
    return result ? result.place + 1 : 0;
  });
  return before.reduce((sum, number) => sum + number, 1);
}

/** The exact values that slices must have, each with what it is: "Name", "aten::mm". */
export const exactParts = ({ text: _, view: _view, ...exact }: Find): [name: string, value: string][] =>
  Object.entries(exact).map(([name, value]) => [label(name), value === null ? "not known" : String(value)]);

/** "Name aten::mm, category Operator", or the words. */
export function queryText(find: Find, titleOf: (view: string) => string): string {
  const parts = exactParts(find).map(([name, value]) => name === "Name" ? value : `${name.toLowerCase()} ${value}`);
  const text = [...(find.text ? [`“${find.text}”`] : []), ...parts].join(", ");
  return find.view ? `the row of ${titleOf(String(find.view))}: ${text}` : text;
}
