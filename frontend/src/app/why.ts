/** Why the job of the shown run hangs or ended, and its last minutes, as long as the job lives again and again. */

import { computed, type ReadonlySignal, signal } from "@preact/signals";
import type { Failed, Missing } from "../api/types.ts";
import { type Resource, resource } from "./resource.ts";

export interface TextColumn {
  name: string;
  cells: string[];
  is_number: boolean;
}

export interface Why {
  state: "ready";
  outcome: "culprit" | "cannot tell" | "slow work" | "nothing open" | "stopped from outside";
  sentence: string;
  evidence: string[];
  /** What it is called: that it hangs, that it ended, or its last minutes alone. */
  title: string;
  is_running: boolean;
  /** Of the ranks, and of their last minutes. */
  tables: TextColumn[][];
  /** Step times by name, each holds until the next time; and which ranges of the program began around each time. */
  steps: {
    begin_ns: number;
    times_ns: number[];
    curves: Record<string, (number | null)[]>;
    marks: (string | null)[];
  } | null;
}

const EVERY_MS = 5000;

export interface WhySource extends Omit<Resource<Why>, "answer"> {
  /** The answer about the run; null before it is there, and if no Tracer has recorded into it. */
  why: ReadonlySignal<Why | null>;
  /** Why there is no answer; empty while there is one, or it loads. */
  whyHint: ReadonlySignal<string>;
}

/** What is known of the job of a run; an empty name is none. */
export function whyOf(run: ReadonlySignal<string>): WhySource {
  const last = signal<{ run: string; answer: Why | Missing | Failed } | null>(null);
  const why = computed((): Why | null => {
    const answer = last.value?.run === run.value ? last.value.answer : null;
    return answer?.state === "ready" ? answer : null;
  });
  const whyHint = computed(() => {
    const answer = last.value?.run === run.value ? last.value.answer : null;
    return answer?.state === "missing" ? answer.hint : answer?.state === "failed" ? answer.message : "";
  });
  const isLive = computed(() => why.value?.is_running ?? false);
  const { start } = resource<Why | Missing>(() => {
    if (!run.value) return null;
    const request = { route: "why", query: { run: run.value } };
    return isLive.value ? { ...request, version: "live", every_ms: EVERY_MS } : request;
  }, { onAnswer: (answer, { query }) => (last.value = { run: query.run!, answer }) });
  return { why, whyHint, start };
}
