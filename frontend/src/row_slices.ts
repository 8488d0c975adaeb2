/** Which slices of the timeline a row of a view is about: what finds them, and when they were. docs/http_api.md: find. */

import type { Value } from "./format.ts";

/** What finds slices: exact values, words, or the key of a row of a view. */
export type Find = Record<string, Value>;

export interface RowSlices {
  /** Exact values of slices, or words; null where the row names none. */
  find: Find | null;
  /** The time that the row is about, in ns since the recording's origin. */
  range: { from: number; to: number } | null;
  /** For rows about idle gaps: the words that tell which of them. */
  gaps?: string;
  /** Which critical path it is about, as the timeline's address spells it, so that it is drawn. */
  critical?: "1" | "ranks";
  /** In whose recording, if the row says it. */
  worker?: string;
}

type Row = (column: string) => Value;

const BESIDE_NS = 20_000; // around a moment

/** The columns that make a row of these views the row that it is: the server knows its slices by them. */
const KEYS: Record<string, string[]> = {
  operators: ["name"],
  operators_by_shape: ["name", "input_shapes"],
  call_stacks: ["name", "stack", "is_forward_stack"],
  modules: ["path"],
  modules_by_class: ["name"],
  python_calls: ["function", "path"],
  kernels: ["name"],
  kernels_by_op: ["name", "op", "grid", "block", "registers_per_thread", "shared_memory_bytes"],
  kernel_durations: ["from_ns"],
  copies: ["name", "device", "from_device", "to_device"],
  launches: ["call"],
  launch_durations: ["from_ns"],
  graphs: ["graph", "op", "device"],
  operator_efficiency: ["name", "input_shapes", "input_types", "input_values", "device"],
  gpus: ["device"],
  idle: ["scope", "device", "stream", "step"],
  exposed_time: ["device", "step"],
  critical_path: ["step", "part"],
  critical_path_names: ["name", "part"],
  critical_path_stretches: ["step", "start_ns"],
  memory_by_operator: ["device", "name"],
  memory_events: ["device", "first_byte"],
};

function findOf(view: string, row: Row): Find | null {
  const key = row("kind") === "rest" ? undefined : KEYS[view]; // a row of the rest is the sum of other rows' slices
  return key ? { view, ...Object.fromEntries(key.map((name) => [name, row(name)])) } : null;
}

/** For rows with a time: its begin, and its length or its end where that is known. */
const TIMES: [begin: string, length: string | null, end: string | null][] = [
  ["allocated_ns", null, "released_ns"],
  ["start_ns", "stretch_ns", null],
  ["start_ns", "dur_ns", null],
  ["start_ns", "total_ns", null],
  ["time_ns", "dur_ns", null],
  ["time_ns", null, null],
  ["at_ns", null, null],
  ["peak_ns", null, null],
];

function rangeOf(row: Row): RowSlices["range"] {
  for (const [begin, length, end] of TIMES) {
    const from = row(begin), lasts = length && row(length), to = end && row(end);
    if (typeof from !== "number" || (length && typeof lasts !== "number")) continue;
    if (typeof lasts === "number") return { from, to: from + lasts };
    return typeof to === "number" ? { from, to } : { from: from - BESIDE_NS, to: from + BESIDE_NS };
  }
  return null;
}

/** Views whose times are on the clock of another worker's recording. */
const OFF_THE_CLOCK = ["pace"];

/** Which critical path views are about, by how their names begin. */
const CRITICAL: [begin: string, "1" | "ranks"][] = [["critical_path", "1"], ["path_", "ranks"]];

/** What of the timeline a row is about; null where it is about none of it. */
export function slicesOfRow(view: string, row: Row): RowSlices | null {
  if (OFF_THE_CLOCK.includes(view)) return null;
  if (view === "advice") return slicesOfAdvice(String(row("rule")), String(row("view")), String(row("filter") ?? ""));
  const find = findOf(view, row);
  const range = rangeOf(row);
  const critical = CRITICAL.find(([begin]) => view.startsWith(begin))?.[1];
  const worker = range && row("worker");
  const whose = typeof worker === "string" && { worker };
  return find || range ? { find, range, ...(critical && { critical }), ...whose } : null;
}

/** Of views whose rows advice points to: the category of the slices whose names their filter is about. */
const CATEGORIES: Record<string, string> = {
  operators: "Operator",
  operators_by_shape: "Operator",
  kernels: "Kernel",
  kernels_by_op: "Kernel",
  launches: "Runtime",
};

/** What rules are about as a whole. */
const OF_RULES: Record<string, string> = {
  communication: "Communication",
  copies: "Memcpy",
  data_loading: "DataLoader",
};

/** What of the timeline shows what a rule found; null where nothing does. */
export function slicesOfAdvice(rule: string, view: string, filter: string): RowSlices | null {
  if (view === "gaps") return { find: null, range: null, gaps: filter };
  const category = CATEGORIES[view];
  if (category && filter) return { find: { text: filter, category }, range: null };
  return OF_RULES[rule] ? { find: { category: OF_RULES[rule] }, range: null } : null;
}
