/** Answers about a source for what is drawn with Preact. */

import { useEffect, useState } from "preact/hooks";
import { type Failed, follow, type Loading, type Query } from "../api.ts";
import { type Source, startAnew } from "./state.ts";

type Answer = Loading | Failed | { state: "ready" };

/** The answer to a question about a source, asked until it is there; null before the first. */
export function useAsked<T extends Answer>(
  { place, stamp }: Source,
  route: string,
  question: Query,
): T | Failed | null {
  const query = { ...place, stamp, ...question };
  const key = JSON.stringify([route, query]);
  const [latest, tell] = useState<{ key: string; answer: T | Failed } | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    void follow<T>(route, query, (answer) => {
      if (answer.state === "failed" && answer.code === "changed") startAnew(place.worker);
      tell({ key, answer });
    }, stop.signal);
    return () => stop.abort();
  }, [key]);
  return latest?.key === key ? latest.answer : null;
}
