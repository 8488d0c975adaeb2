/** The server's answers about a timeline. Times are ns since the trace's origin; docs/http_api.md describes the routes. */

import type { Find } from "./row_slices.ts";
import type { Failed, Loading } from "./types.ts";

export type { Find };

export type Part = "annotations" | "projected" | "calls" | "work" | "waits" | "other" | "python";

export interface Track {
  /** Name of the device or process that it belongs to. */
  process: string;
  /** Name of the thread or stream. */
  name: string;
  part: Part;
  device: number | null;
  stream: number | null;
  pid: string | null;
  tid: string | null;
  first_row: number;
  lanes: number;
  slices: number;
}

export interface Step {
  name: string;
  start_ns: number;
  end_ns: number;
  is_complete: boolean;
  /** Of a server's iteration; null for other steps. */
  phase?: string | null;
  part?: string | null;
  batch?: number;
}

/** A value over time. */
export interface Counter {
  id: number;
  name: string;
  kind: "bytes" | "fraction" | "count" | "number";
  device: string;
  /** None of the host. */
  device_index: number | null;
  stream: number | null;
  least: number;
  most: number;
  /** What follows a value: "/s" after bytes, or a number's unit. */
  unit: string;
  /** Whether it is the change since the recording began. */
  is_relative: boolean;
}

/** A counter's statistics in a range of time; null where it has no value there. */
export interface AreaCounter {
  id: number;
  mean: number | null;
  least: number | null;
  most: number | null;
  first: number | null;
  last: number | null;
}

export interface Meta {
  state: "ready";
  stamp: string;
  window: [number, number];
  /** ns since 1970, as text: it is too large for a number. */
  origin_ns: string;
  /** Error bound of the measured clock offset; null if it was not measured. */
  clock_error_ns: number | null;
  /** Measured clock offset, which `origin_ns` is corrected by; null if it was not measured. */
  clock_offset_ns: number | null;
  slices: number;
  labels: number;
  categories: string[];
  /** In the order of drawing. */
  tracks: Track[];
  steps: Step[];
  /** How busy each of 512 equal parts of the window was. */
  activity: { device: number[] | null; host: number[] | null };
  counters: Counter[];
}
export type MetaAnswer = Loading | Failed | Meta;

export interface LabelPage {
  state: "ready";
  texts: string[];
  /** The readable labels of the kernels among them, by their full names. */
  labels: Record<string, string>;
  categories: number[];
}

/** The main facts of a slice. */
export interface SliceSummary {
  slice: number;
  name: string;
  category: string;
  track: number;
  lane: number;
  start_ns: number;
  dur_ns: number;
}

export interface Arrow {
  kind: string;
  from: SliceSummary;
  to: SliceSummary;
}

/** Where a slice came from: its call, operator, module, and Python frames. */
export interface Provenance {
  call: SliceSummary | null;
  op: SliceSummary | null;
  /** Annotations around it, the innermost first. */
  annotations: SliceSummary[];
  module: SliceSummary | null;
  /** Innermost first. */
  python: SliceSummary[];
  stack: string[] | null;
  /** Whether Python calls and stack are those of the forward operator. */
  is_forward: boolean;
}

/** How long slices last; the last three are the numbers of slices. */
export interface DurationStats {
  count: number;
  total_ns: number;
  mean_ns: number;
  min_ns: number;
  p50_ns: number;
  p95_ns: number;
  max_ns: number;
  bins: { from_ns: number[]; to_ns: number[]; count: number[] };
  fastest: number;
  median: number;
  slowest: number;
}

/** A part of the calls behind a row, such as those of one operator. */
/** A row of a view, and the filter that shows it there. */
export interface RowLink {
  view: string;
  title: string;
  filter: string;
}

export interface CallShare {
  kind: "operator" | "module" | "line" | "input" | "launch" | "rank";
  text: string;
  calls: number;
  total_ns: number;
  /** Of a line of the program. */
  stack: string | null;
  /** How many modules of a class. */
  instances: number | null;
  /** Of an operator or a module: its row in another view. */
  row?: RowLink | null;
  /** Of a rank: its worker, and the row's key there. */
  worker?: string;
  find?: Find;
}

/** What the calls behind a row have in common. */
export interface RowFacts {
  state: "ready";
  /** Null where no call is in the timeline. */
  durations: DurationStats | null;
  slowest: SliceSummary | null;
  origins: CallShare[];
  inputs: CallShare[];
  steps: { name: string; calls: number; total_ns: number }[];
  roof: { roof_frac: number; bound_by: string; time_frac: number } | null;
}

/** The calls behind a row on each rank. */
export interface RankFacts {
  state: "ready";
  /** What stands out; empty where there are no other ranks. */
  text: string;
  /** The longest first. */
  ranks: CallShare[];
}

/** The advice about a row. */
export interface RowAdvice {
  state: "ready";
  advice: { rule: string; title: string }[];
}

/** All facts of a slice. */
export interface SliceFacts extends SliceSummary {
  state: "ready";
  self_ns: number | null;
  /** Where its event begins in the file. */
  offset: number | null;
  is_finished: boolean;
  /** The step that it belongs to, which for device work is that of its launch. */
  step: string | null;
  previous: number | null;
  next: number | null;
  /** Innermost first. */
  ancestors: SliceSummary[];
  /** `device_ns` is the time in which any of it ran, `total_ns` the sum. */
  launched: { count: number; device_ns: number; total_ns: number; slices: SliceSummary[] } | null;
  /** `launched_by` for device work; `called_from`, which has no call, for host work. */
  launched_by: Provenance | null;
  called_from: Provenance | null;
  forward: SliceSummary | null;
  backward: SliceSummary[];
  arrows: Arrow[];
  collective: Record<string, unknown> | null;
  /** Of a kernel that a graph replayed: its operator, module, layer, and how they are known. */
  replayed: Record<string, string | null> | null;
  same_name: DurationStats;
  /** Rows of other views that this slice is counted in. */
  rows: RowLink[];
}
export type SliceAnswer = Loading | Failed | SliceFacts;

export interface SearchResults {
  state: "ready";
  count: number;
  /** By count, largest first; at most 100. */
  /** Each with its count and its summed duration. */
  names: [name: string, count: number, total_ns: number][];
  /** How many of them begin in each of 512 equal parts of the window. */
  histogram: number[];
  slice: SliceSummary | null;
  /** How many results come before that one. */
  place: number | null;
}
/** A segment of a step's critical path. */
export interface PathSegment {
  from_ns: number;
  to_ns: number;
  /** Its part of the step, as in the view of the critical path. */
  part: string;
  /** Why it could not begin earlier. */
  reason: string;
  /** What runs; null in a wait, and where nothing was recorded. */
  slice: SliceSummary | null;
  /** How many segments are merged into it; the other values describe the longest. */
  count: number;
}
/** A segment of the path across ranks, on one worker. */
export interface CrossRankSegment extends PathSegment {
  /** The step's name. */
  step: string;
  /** Its position on the path, numbered over all ranks: the path continues at the next number. */
  first: number;
  last: number;
  /** Description of what ends when it begins; null before the step. */
  since: string | null;
  /** Description of what begins when it ends. */
  until: string;
}
export interface Path<Piece = PathSegment> {
  state: "ready";
  /** In order of time. */
  pieces: Piece[];
}
export type PathAnswer<Piece = PathSegment> = Loading | Failed | Path<Piece>;

/** How much of the path across ranks lies on each worker in a range. */
export interface Shares {
  state: "ready";
  /** Longest first. */
  shares: { worker: string; rank: number; path_ns: number }[];
  /** What is incomplete because recordings are missing. */
  notes: string[];
}
export type SharesAnswer = Loading | Failed | { state: "missing"; hint: string } | Shares;

export type SearchAnswer = Loading | Failed | SearchResults;
