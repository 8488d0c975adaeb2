/** What several traces found, as one answer. */

import type { Brief, Hits, HitsAnswer } from "./model.ts";

type Answers = Record<string, HitsAnswer>;

const ready = (answers: Answers): Hits[] => Object.values(answers).filter((answer) => answer.state === "ready");

/** How many slices were found so far. */
export const hitCount = (answers: Answers): number => ready(answers).reduce((sum, { count }) => sum + count, 0);

/** The names that were found with their counts in all traces, most first. */
export function namesFound(answers: Answers): [name: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { names } of ready(answers)) {
    for (const [name, count] of names) counts.set(name, (counts.get(name) ?? 0) + count);
  }
  return [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

/** The traces that could not look, with what they say. */
export const failures = (answers: Answers): [source: string, message: string][] =>
  Object.entries(answers).flatMap(([source, answer]) => answer.state === "failed" ? [[source, answer.message]] : []);

export interface Hit {
  source: string;
  brief: Brief;
  /** Its start on the common clock. */
  at: number;
  /** How many hits of its own trace lie before it. */
  place: number;
}

export type Direction = "next" | "previous";

/** What one trace says of where the walk goes: its next hit, or none, and how many hits it has. */
export interface Offer {
  hit: Hit | null;
  count: number;
}

/** Of one hit of each trace the next: the first one, or the last one for `previous`; traces at one time by their order. */
export function nearest(offers: Offer[], direction: Direction): Hit | null {
  const isNearer = (a: Hit, b: Hit | null) => !b || (direction === "next" ? a.at < b.at : a.at >= b.at);
  return offers.reduce<Hit | null>((best, { hit }) => (hit && isNearer(hit, best) ? hit : best), null);
}

/** Which one of all hits of all traces the nearest is, from 1. */
export function standing(offers: Offer[], direction: Direction, chosen: Hit): number {
  const before = offers.map(({ hit, count }) => {
    if (hit === chosen) return hit.place;
    if (direction === "next") return hit ? hit.place : count;
    return hit ? hit.place + 1 : 0;
  });
  return before.reduce((sum, number) => sum + number, 1);
}
