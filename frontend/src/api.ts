/** The server's answers, as docs/http_api.md describes them, and how to ask for them. */

import type { Kind, Value } from "./format.ts";
import { answerFromReport, isReport } from "./report.ts";

export interface Span {
  name: string;
  label: string;
  file: string;
  bytes: number;
  stamp: string;
}
export interface Worker {
  name: string;
  spans: Span[];
}
export interface Run {
  name: string;
  label: string;
  workers: Worker[];
  /** What its recorder says of it: what is missing, partial or lost, and why. */
  notes: Note[];
}
export interface Note {
  rule: string;
  level: "loss" | "warning" | "note";
  text: string;
  /** Empty for the whole run. */
  span: string;
  ranks: number;
}
export interface Listing {
  runs: Run[];
  problems: { path: string; reason: string }[];
  scanning: boolean;
}
export interface Column {
  name: string;
  kind: Kind;
  doc: string;
}
export interface Parameter {
  name: string;
  kind: "choice" | "number" | "text";
  /** The default first; none for a number or a text. */
  choices: string[];
}
export interface ViewEntry {
  id: string;
  title: string;
  group: string;
  doc: string;
  variant_of: string | null;
  variant: string;
  part_of: string | null;
  detail_of: string | null;
  within: "rows" | "windows" | "recording" | "steps" | "moments";
  /** What it is about: one recording, all workers' of the same span, or all of the run. */
  scope: "recording" | "span" | "run";
  hint: string;
  parameters: Parameter[];
  columns: Column[];
  key: string[];
  weight: string | null;
  charts: string[];
  /** The column with the number of the enclosing row: the rows are a tree. */
  parent: string | null;
  flames: string[];
  /** Columns to draw over the first instant, one line for each value of the `series`. */
  curves: string[];
  series: string[];
  marks: string | null;
  /** The columns whose values are the lines and the columns of a matrix. */
  matrix: [string, string] | null;
  /** The columns of a histogram's lower and upper edges. */
  bins: [string, string] | null;
}
export interface Progress {
  stage: string;
  fraction: number | null;
  bytes_per_second: number | null;
  seconds_left: number | null;
}

export type Loading = { state: "loading"; progress: Progress | null };
/** `code` is the server's, or "unreachable" if there was no answer to read. */
export type Failed = { state: "failed"; code: string; message: string };
/** What the part of a file holds that is read: numbers that the rest can only raise. */
export interface PartialRead {
  fraction: number;
  events: number;
  kinds: { kind: string; events: number }[];
  span_ns: number | null;
  steps: number;
  step_ns: number | null;
  operators: NamedTime[];
  kernels: NamedTime[];
  facts: { fact: string; value: string }[];
}
export interface NamedTime {
  name: string;
  count: number;
  total_ns: number;
}
export type TraceState =
  | (Loading & { partial?: PartialRead })
  | Failed
  | {
    state: "ready";
    path: string;
    events: number;
    rank: number | null;
    steps: string[];
    missing: Record<string, string>;
    findings: Partial<Record<"loss" | "warning" | "note", number>>;
  };
export interface Table {
  state: "ready";
  view: string;
  columns: Column[];
  data: Record<string, Value[]>;
  /** How many rows there were, where a report holds only the first. */
  cut_from?: number;
}
/** A view of two traces side by side; docs/comparing.md says what of each column there is. */
export interface Comparison extends Table {
  compared: string[];
  basis: { words: string };
  key: string[];
  weight: string | null;
  parent: string | null;
}
export type ViewAnswer = Loading | Failed | Table | { state: "missing"; hint: string };

/** One event as the file has it; a number in `value` that JavaScript would round is a text. */
export interface FoundEvent {
  state: "ready";
  offset: number;
  length: number;
  text: string;
  value: Record<string, unknown> | null;
  problem: string | null;
}
export type EventAnswer = Loading | Failed | FoundEvent;

export type Query = Record<string, string>;

/** Asks the plugin's server; TensorBoard gives the frame a base address to which the routes are relative. */
export async function ask<T>(route: string, query: Query, signal?: AbortSignal): Promise<T | Failed> {
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

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Asks until the answer is more than "loading", ever more slowly, and tells each answer on the way. */
export async function follow<T extends { state: string }>(
  route: string,
  query: Query,
  tell: (answer: T | Failed) => void,
  signal: AbortSignal,
) {
  for (let wait = 100; !signal.aborted; wait = Math.min(500, wait * 1.5)) {
    const answer = await ask<T>(route, query, signal);
    if (signal.aborted) return;
    tell(answer);
    if (answer.state !== "loading") return;
    await pause(wait);
  }
}
