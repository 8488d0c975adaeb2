/** Merges the search results of several traces. */

import type { Find, SearchAnswer, SearchResults, SliceSummary } from "../../api/timeline_types.ts";
import { readableName } from "../../format/readable_names.ts";
import { label } from "../../format/numbers.ts";
import { uncapitalized } from "../../format/steps.ts";

type Answers = Record<string, SearchAnswer>;

const ready = (answers: Answers): SearchResults[] =>
  Object.values(answers).filter((answer) => answer.state === "ready");

/** How many results there are so far. */
export const resultCount = (answers: Answers): number => ready(answers).reduce((sum, { count }) => sum + count, 0);

/** The names of the results with their counts and summed durations in all traces, most first. */
export function resultNames(answers: Answers): [name: string, count: number, total_ns: number][] {
  const sums = new Map<string, [count: number, total_ns: number]>();
  for (const [name, count, total_ns] of ready(answers).flatMap(({ names }) => names)) {
    const [calls, time] = sums.get(name) ?? [0, 0];
    sums.set(name, [calls + count, time + total_ns]);
  }
  return [...sums].map(([name, [count, total_ns]]) => [name, count, total_ns] as [string, number, number])
    .sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

/** The traces whose search failed, with the messages. */
export const failures = (answers: Answers): [source: string, message: string][] =>
  Object.entries(answers).flatMap(([source, answer]) => answer.state === "failed" ? [[source, answer.message]] : []);

export interface SearchResult {
  source: string;
  summary: SliceSummary;
  /** Its start on the common clock. */
  at: number;
  /** How many results of its own trace come before it. */
  place: number;
}

export type Direction = "next" | "previous";

/** A trace's next result, or none, and how many results it has. */
export interface Candidate {
  result: SearchResult | null;
  count: number;
}

/** The next result over all traces: the first candidate, or the last one for `previous`; ties by the order of traces. */
export function nearest(candidates: Candidate[], direction: Direction): SearchResult | null {
  const isNearer = (a: SearchResult, b: SearchResult | null) =>
    !b || (direction === "next" ? a.at < b.at : a.at >= b.at);
  return candidates.reduce<SearchResult | null>(
    (best, { result }) => (result && isNearer(result, best) ? result : best),
    null,
  );
}

/** The position of a result among all results of all traces, from 1. */
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
  Object.entries(exact).map(([name, value]) => [label(name), value === null ? "missing" : String(value)]);

/** "Name aten::mm, category Operator", or the words. */
export function queryText(find: Find, titleOf: (view: string) => string): string {
  const parts = exactParts(find).map(([name, value]) =>
    name === "Name" ? readableName(value) : `${uncapitalized(name)} ${readableName(value)}`
  );
  const text = [...(find.text ? [`“${find.text}”`] : []), ...parts].join(", ");
  return find.view ? `the row of ${titleOf(String(find.view))}: ${text}` : text;
}
