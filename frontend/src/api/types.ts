/** The server's answers, as docs/http_api.md describes them. */

import type { Kind, Value } from "../format/numbers.ts";

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
  /** The name of its newest span. */
  newest: string;
}
export interface Run {
  name: string;
  label: string;
  /** None of a job that left no trace, or hasn't yet. */
  workers: Worker[];
  /** The recorder's notes: what is missing, partial or lost, and why. */
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
  /** The name of the newest run; null if there is none. */
  newest: string | null;
  problems: { path: string; reason: string }[];
  scanning: boolean;
}
export interface Column {
  name: string;
  kind: Kind;
  doc: string;
  /** Whether it is an amount, so that the sum of rows means something; unsaid of columns that the page makes. */
  adds_up?: boolean;
  /** What it is drawn as, where its kind alone doesn't say it. */
  shown_as?: "shapes" | "place" | "name" | "hash" | "id" | "offset" | "bound" | "detail" | "own unit" | "time part";
  /** What people call it, if not by its name in words. */
  title?: string;
  /** What people call its values, if these are ids. */
  words?: Record<string, string>;
}
export interface Parameter {
  name: string;
  kind: "choice" | "number" | "text";
  /** The default first; none for a number or a text. */
  choices: string[];
}
/**
 * Where the page draws a view of an entry: as a tab, above the tabs, as the sentence of a tab, below a tab, in an opened
 * row of tabs.
 */
export type Place =
  | { kind: "tab"; label: string }
  | { kind: "head" }
  | { kind: "lead"; of: string }
  | { kind: "part"; of: string }
  | { kind: "detail"; of: string; also: string[] };

/** An entry of the panel. */
export interface EntryFacts {
  title: string;
  question: string;
  /** Entries of one section stand together. */
  section: string;
  /** The number next to its title: of a view's first row the value of a column, or how many rows the view has. */
  figure: { view: string; column: string | null } | null;
  /** The view whose first row is the answer as a sentence. */
  sentence?: string | null;
}

/** What a table is drawn as: which of its columns make which part of the picture. */
export type Picture =
  | { kind: "tree"; parent: string; widths: string[]; folded: string | null; is_in_order: boolean; color: string }
  | { kind: "lines"; values: string[]; series: string[]; marks: string | null; is_stacked: boolean; means?: string[] }
  | { kind: "heatmap"; down: string; across: string; parts: string[]; mark: string | null }
  | { kind: "histogram"; lower: string; upper: string; heights: string[] }
  | { kind: "bars"; lengths: string[] }
  | {
    kind: "sentence";
    amounts: string[] | null;
    action: string | null;
    texts: string[];
    colors: Record<string, string>;
  }
  | { kind: "treemap"; area: string; name: string; group: string; groups: string[] }
  | {
    kind: "bands";
    begin: string;
    end: string;
    height: string;
    name: string;
    series: string;
    levels_view: string;
    levels: string[];
    ranges_view: string;
    ranges: string[];
  }
  | {
    kind: "roofline";
    intensity: string;
    rate: string;
    time: string;
    peak_rate: string;
    peak_bandwidth: string;
    number_format: string;
    byte_rate: string;
    reason: string;
    gap: string;
  }
  | {
    kind: "part_bars";
    bar: string;
    part: string;
    length: string;
    name: string | null;
    count: string | null;
    source: string | null;
    is_of_steps: boolean;
    what_if: string | null;
  }
  | { kind: "step_columns" }
  | { kind: "range_bars"; name: string; host: string; busy: string; idle: string; span: string }
  | { kind: "stacked"; whole: string; parts: string[]; only: [string, string] | null };
export type PictureOf<K extends Picture["kind"]> = Extract<Picture, { kind: K }>;

/** How a row, by the key of its table, finds its slices in the timeline. */
export interface Slices {
  are_highlighted: boolean;
  /** Rows with this value in `kind` have none. */
  except_kind: string | null;
  /** Of slices whose names the view's filter is about. */
  category: string | null;
  /** The timeline's panel that lists the same rows. */
  panel: "gaps" | null;
}

/** The columns with a row's time (an instant, or a start with a duration or an end) and its worker. */
export interface RowTime {
  begin: string;
  length: string | null;
  end: string | null;
  worker: string | null;
}

/** The columns that point to rows of another view, and the categories of slices that rules are about as a whole. */
export interface Reference {
  view: string;
  filter: string;
  rule: string;
  categories: Record<string, string>;
}

export interface ViewEntry {
  id: string;
  title: string;
  /** What links to it say: its entry, and its tab if that isn't the first one. */
  page_title: string;
  entry: EntryFacts;
  doc: string;
  place: Place;
  within: "rows" | "windows" | "recording" | "steps" | "moments";
  /** Whether it can be restricted to a server's `phase`. */
  takes_steps?: boolean;
  /** What it is about: one recording, all workers' of the same span, or all of the run. */
  scope: "recording" | "span" | "run";
  hint: string;
  parameters: Parameter[];
  columns: Column[];
  key: string[];
  weight: string | null;
  /** What all rows of the weight add up to, where other tables of the page add up to another time. */
  whole?: string;
  picture: Picture | null;
  slices: Slices | null;
  time: RowTime | null;
  reference: Reference | null;
  /** Whether the timeline draws the critical path when a row is opened in it. */
  shows_path: boolean;
  /** Whether every memory snapshot has it. */
  is_of_snapshot?: boolean;
  /** Views of a trace in whose opened rows it is shown, of the memory snapshot next to the trace. */
  in_rows_of_trace?: string[];
  /** The column with the levels of its findings. */
  level?: string;
  /** What can be compared with another recording; empty where rows aren't the same things there. */
  comparable_columns: string[];
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
/** What has been read of a file so far: numbers that can only grow. */
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
export type TraceState = (Loading & { partial?: PartialRead }) | Failed | ReadyState;
export interface ReadyState {
  state: "ready";
  path: string;
  events: number;
  rank: number | null;
  steps: string[];
  step_noun: "step" | "iteration";
  /** The program that wrote the file, if it wasn't torch.profiler. */
  foreign_writer: string | null;
  /** The vendor's name for the units that multiply matrices, such as "tensor cores". */
  matrix_units: string;
  /** The readable labels of its kernels, by their full names. */
  labels: Record<string, string>;
  missing: Record<string, string>;
  /** Files that may be chosen to say what its graphs launch. */
  captures: string[];
  /** Where the recording is listed, if its file turned out to hold several processes. */
  moved?: { run: string; worker: string; span: string };
  /** Where the memory snapshot next to the trace is listed. */
  snapshot?: { run: string; worker: string; span: string };
  findings: Partial<Record<"loss" | "warning" | "note", number>>;
}
export interface Table {
  state: "ready";
  view: string;
  columns: Column[];
  data: Record<string, Value[]>;
  /** Which of its numbers are doubtful, and why; that a report holds only its first rows. */
  note?: string;
}
/** A view of two traces side by side; docs/comparing.md describes the columns. */
export interface Comparison extends Table {
  /** The readable labels of the kernels of both, by their full names. */
  labels: Record<string, string>;
  compared: string[];
  basis: { words: string };
  key: string[];
  weight: string | null;
  parent: string | null;
}
/** Why a step takes longer than one of the base; docs/comparing.md describes the terms. */
export interface StepDifference extends Table {
  labels: Record<string, string>;
  headline: string;
  coverage: string;
}
/** The runs of a job over time; docs/history.md describes it. */
export interface History extends Table {
  answers: string[];
  /** Where the level changed: the number of the first run, from 1, and the steps of both levels. */
  changes: { nth: number; before_ns: number; after_ns: number; growth_frac: number }[];
}
export type Missing = { state: "missing"; hint: string };
export type ViewAnswer = Loading | Failed | Table | Missing;

/** What was found, and what to do about it. */
export interface Claim {
  id: string;
  about: "run" | "recording";
  title: string;
  evidence: string;
  action: string;
  saving_ns: number | null;
  saving_frac: number | null;
  saving_low_ns: number | null;
  saving_high_ns: number | null;
  confidence: string;
  view: string;
  filter: string;
}
/** What `kinetoscope summary` prints: what costs most, and the rows that show it. */
export interface Summary {
  state: "ready";
  verdict: Claim;
  also: Claim[];
  /** How many workers the run has; 0 if it is of the recording alone. */
  ranks: number;
  /** How many steps averages are over; 0 if none is marked. */
  steps: number;
  /** How long a step takes without the profiler, if recording slows steps. */
  usual_step_ns: number | null;
  rows: { top?: Record<string, Value>[] };
}
/** While the ranks of a run are compared, and late ones are read, what is known so far. */
export type LoadingSummary = Loading & { so_far?: Summary };

/** One event as recorded in the file; a number that JavaScript would round is a string in `value`. */
export interface RawEvent {
  state: "ready";
  offset: number;
  length: number;
  text: string;
  value: Record<string, unknown> | null;
  problem: string | null;
}
export type EventAnswer = Loading | Failed | RawEvent;

export type Query = Record<string, string>;
