/** The answers of the server about the selected trace, or another one, for components. */

import { useMemo, useRef } from "preact/hooks";
import type {
  EventAnswer,
  Failed,
  Loading,
  LoadingSummary,
  Missing,
  Query,
  Summary,
  Table,
  ViewAnswer,
} from "../api/types.ts";
import { ABOUT, inWordsOf } from "./advice_words.ts";
import { cachedAnswer, useResource } from "./resource.ts";
import { trace, workersOf } from "./router.ts";

/** The place of a trace, and the version of its file. */
export interface TracePlace {
  run: string;
  worker: string;
  span: string;
  capture?: string;
  version: string;
}

/** The answer about a trace; null before the first. `version` changes when another file that it is about does. */
function useAnswerAbout<T extends ViewAnswer | EventAnswer | Summary | LoadingSummary>(
  route: "view" | "compare" | "event" | "answer",
  query: Query,
  version = "",
  { version: stamp, ...place }: TracePlace = trace.value,
): T | null {
  const request = { route, query: { ...query, ...place }, version: `${stamp} ${version}` };
  return useResource<T>(place.span ? request : null) as T | null;
}

/** A view of the selected trace with its default parameters, if the page has it already. */
export function cachedTable(view: string): Table | null {
  const { version, ...place } = trace.value;
  const answer = cachedAnswer({ route: "view", query: { view, ...place }, version: `${version} ` });
  return answer?.state === "ready" ? answer as Table : null;
}

type Ready = { state: "ready"; view?: string };
type Answer<T> = Loading | Failed | Missing | T | null;

export interface ShownAnswer<T = Table> {
  /** The last answer to this very request; null before the first. */
  answer: Answer<T>;
  /** What to show, dimmed, until the answer is there: the same of what was selected before. */
  earlier: T | null;
}

/** The table to show, if there is one. */
export const tableOf = <T extends Ready>({ answer, earlier }: ShownAnswer<T>): T | null =>
  answer?.state === "ready" ? answer as T : earlier;

/** The view's answer for a trace, which is the selected one unless another is named; not yet while it is too early. */
export function useAnswer(view: string, parameters: Query = {}, place?: TracePlace, isEarly = false): ShownAnswer {
  const answer = useAnswerAbout<ViewAnswer>("view", { view, ...parameters }, "", place);
  return useShown(isEarly && answer?.state === "ready" ? null : answer, view);
}

/** The same while it is needed; otherwise nothing is asked. */
export const useAnswerIf = (isNeeded: boolean, view: string): ShownAnswer =>
  useAnswer(view, {}, isNeeded ? trace.value : NOWHERE);

/** The view compared with that of another trace; `version` changes when the other trace's file does. */
export const useComparison = (view: string, query: Query, version: string): ShownAnswer =>
  useShown(useAnswerAbout<ViewAnswer>("compare", { view, ...query }, version), view);

/** The place that nothing is asked of. */
export const NOWHERE: TracePlace = { run: "", worker: "", span: "", version: "" };

/** A summary, and whether it is what is known so far: ranks are still being compared. */
export type ShownSummary = ShownAnswer<Summary> & { isComparing: boolean };

/** The summary of the selected trace, with what its ranks say of each other. */
export function useSummary(place = trace.value): ShownSummary {
  const of = workersOf(place.run).length > 1 ? "run" : "recording";
  const answer = useAnswerAbout<LoadingSummary | Failed | Summary>("answer", { of }, "", place);
  const soFar = answer?.state === "loading" && answer.so_far;
  return { ...useShown<Summary>(soFar || answer), isComparing: Boolean(soFar) };
}

/** A view's answer; of advice in the words of the summary, which also has what the other ranks' recordings say. */
export function useAdvised(view: string, shown: ShownAnswer): ShownAnswer & { isComparing: boolean } {
  const { answer, isComparing } = useSummary(view in ABOUT ? trace.value : NOWHERE);
  const summary = answer?.state === "ready" ? answer : null, table = tableOf(shown);
  const own = useMemo(() => table && summary ? inWordsOf(summary, table) : table, [table, summary]);
  return { answer: shown.answer?.state === "ready" ? own : shown.answer, earlier: own, isComparing };
}

/** An answer with the one before it, which is shown while the next one loads; of a view only with the same view's. */
export function useShown<T extends Ready>(answer: Answer<T>, view?: string): ShownAnswer<T> {
  const earlier = useRef<T | null>(null);
  if (answer?.state === "ready") earlier.current = answer as T;
  return { answer, earlier: !view || earlier.current?.view === view ? earlier.current : null };
}

/** The event of a trace, the selected one unless another is named, that begins at this byte of its text. */
export const useEvent = (offset: number, place?: TracePlace): EventAnswer | null =>
  useAnswerAbout<EventAnswer>("event", { offset: String(offset) }, "", place);
