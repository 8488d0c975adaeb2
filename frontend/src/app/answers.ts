/** The answers of the server about the selected trace, or another one, for components. */

import { useRef } from "preact/hooks";
import type { EventAnswer, Query, Table, ViewAnswer } from "../api/types.ts";
import { cachedAnswer, useResource } from "./resource.ts";
import { trace } from "./router.ts";
import { matrixUnits } from "../format/vendor_words.ts";

/** The place of a trace, and the version of its file. */
export interface TracePlace {
  run: string;
  worker: string;
  span: string;
  capture?: string;
  version: string;
}

/** The answer about a trace; null before the first. `version` changes when another file that it is about does. */
function useAnswerAbout<T extends ViewAnswer | EventAnswer>(
  route: "view" | "compare" | "event",
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

/** What people call the devices: a GPU, unless the page knows that its vendor makes others. */
export function deviceNoun(): string {
  return { "tensor cores": "GPU", "matrix cores": "GPU", "cube units": "NPU" }[matrixUnits.value] ?? "Device";
}

export interface ShownAnswer {
  /** The last answer to this very request; null before the first. */
  answer: ViewAnswer | null;
  /** The table to show, dimmed, until the answer is there: the same view of what was selected before. */
  earlier: Table | null;
}

/** The table to show, if there is one. */
export const tableOf = ({ answer, earlier }: ShownAnswer): Table | null => answer?.state === "ready" ? answer : earlier;

/** The view's answer for a trace, which is the selected one unless another is named. */
export const useAnswer = (view: string, parameters: Query = {}, place?: TracePlace): ShownAnswer =>
  useEarlier(view, useAnswerAbout<ViewAnswer>("view", { view, ...parameters }, "", place));

/** The view compared with that of another trace; `version` changes when the other trace's file does. */
export const useComparison = (view: string, query: Query, version: string): ShownAnswer =>
  useEarlier(view, useAnswerAbout<ViewAnswer>("compare", { view, ...query }, version));

function useEarlier(view: string, answer: ViewAnswer | null): ShownAnswer {
  const earlier = useRef<Table | null>(null);
  if (answer?.state === "ready") earlier.current = answer;
  return { answer, earlier: earlier.current?.view === view ? earlier.current : null };
}

/** The event of a trace, the selected one unless another is named, that begins at this byte of its text. */
export const useEvent = (offset: number, place?: TracePlace): EventAnswer | null =>
  useAnswerAbout<EventAnswer>("event", { offset: String(offset) }, "", place);
