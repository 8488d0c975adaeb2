/** Requests to the server: one request, or polling until the answer is no longer "loading". */

import { answerFromReport, isReport } from "./report.ts";
import type { Failed, Query } from "./types.ts";

/** Fetches an answer from the plugin's server; TensorBoard gives the frame a base address to which the routes are relative. */
export async function fetchAnswer<T>(route: string, query: Query, signal?: AbortSignal): Promise<T | Failed> {
  if (isReport) return await answerFromReport(route, query) as T | Failed;
  try {
    const response = await fetch(`${route}?${new URLSearchParams(query)}`, { signal });
    const text = await response.text();
    if (text.startsWith("{") || text.startsWith("[")) return JSON.parse(text);
    const message = `The server answered ${response.status} ${response.statusText} to “${route}”.`;
    return { state: "failed", code: "unreachable", message };
  } catch (error) {
    const message = `“${route}” got no answer: ${error instanceof Error ? error.message : error}.`;
    return { state: "failed", code: "unreachable", message };
  }
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 500;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Polls with growing pauses until the answer is no longer "loading"; then every `every_ms`, if set. */
export async function poll<T extends { state: string }>(
  { route, query, every_ms = 0 }: { route: string; query: Query; every_ms?: number },
  onAnswer: (answer: T | Failed) => void,
  signal?: AbortSignal,
  delay_ms = 0,
) {
  if (delay_ms) await pause(delay_ms);
  for (let wait = FIRST_PAUSE_MS; !signal?.aborted; wait = Math.min(LONGEST_PAUSE_MS, wait * 1.5)) {
    const answer = await fetchAnswer<T>(route, query, signal);
    if (signal?.aborted) return;
    onAnswer(answer);
    if (answer.state !== "loading" && !every_ms) return;
    await pause(answer.state === "loading" ? wait : every_ms);
  }
}
