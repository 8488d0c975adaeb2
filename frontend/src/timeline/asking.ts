/** Answers about sources for what is drawn with Preact. */

import { useEffect, useState } from "preact/hooks";
import { type Failed, follow, type Loading, type Query } from "../api.ts";
import { type Source, startAnew } from "./state.ts";

type Answer = Loading | Failed | { state: "ready" };

/** A question about a source. */
export interface Question {
  source: Source;
  route: string;
  query: Query;
}

/** The answers to the questions, each asked until it is there; null before the first. What is known isn't asked again. */
export function useAllAsked<T extends Answer>(questions: Question[]): (T | Failed | null)[] {
  const [latest, tell] = useState<Record<string, T | Failed>>({});
  const wished = questions.map(({ source: { place, stamp }, route, query }) => {
    const whole = { ...place, stamp, ...query };
    return { place, route, query: whole, key: JSON.stringify([route, whole]) };
  });
  useEffect(() => {
    const stop = new AbortController();
    const kept = wished.filter(({ key }) => latest[key]?.state === "ready").map(({ key }) => [key, latest[key]!]);
    tell(Object.fromEntries(kept));
    for (const { place, route, query, key } of wished) {
      if (latest[key]?.state === "ready") continue;
      void follow<T>(route, query, (answer) => {
        if (answer.state === "failed" && answer.code === "changed") startAnew(place.worker);
        tell((before) => ({ ...before, [key]: answer }));
      }, stop.signal);
    }
    return () => stop.abort();
  }, [wished.map(({ key }) => key).join()]);
  return wished.map(({ key }) => latest[key] ?? null);
}

/** The answer to one question. */
export const useAsked = <T extends Answer>(question: Question): T | Failed | null => useAllAsked<T>([question])[0]!;
