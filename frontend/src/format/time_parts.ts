import { label, percent } from "./numbers.ts";
import { uncapitalized } from "./steps.ts";

type Part = [string, string];

const KERNELS: Part = ["Kernels", "var(--kernel)"];
const COMMUNICATION: Part = ["Communication", "var(--communication)"];
const ANNOTATIONS: Part = ["Host in annotations", "var(--annotation)"];
const OPERATORS: Part = ["Host in operators", "var(--cpu-exec)"];
const PYTHON: Part = ["Host in Python", "var(--python)"];
const UNRECORDED: Part = ["Host, nothing recorded", "var(--other)"];
const SYNCHRONIZING: Part = ["Host synchronizing", "var(--wait)"];
const NOT_SHOWN: Part = ["Launch or work not recorded", "color-mix(in srgb, var(--unexplained) 40%, var(--surface))"];
const UNEXPLAINED: Part = ["Unexplained", "var(--unexplained)"];

const tint = (color: string, percent: number) => `color-mix(in srgb, var(--${color}) ${percent}%, #fff)`;
const shade = (color: string) => `color-mix(in srgb, var(--${color}) 57%, #000)`;
const EMPTY = "color-mix(in srgb, var(--other) 50%, var(--surface))";

const LATENCY = tint("runtime", 42);
const COPIES: Part = ["Copies and fills", "var(--memcpy)"];
const LOADING: Part = ["Data loading", "var(--dataloader)"];
const BETWEEN_EVENTS: Part = ["Between GPU events", "var(--quiet)"];

/** The colors of the parts that are columns with the titles that the catalogue gives them. */
const COLORS: Record<string, string> = {
  busy_ns: "var(--kernel)",
  late_data_loading_ns: "var(--dataloader)",
  late_synchronizing_ns: SYNCHRONIZING[1],
  late_runtime_ns: "var(--runtime)",
  late_operator_ns: OPERATORS[1],
  late_annotation_ns: ANNOTATIONS[1],
  late_python_ns: PYTHON[1],
  late_unrecorded_ns: UNRECORDED[1],
  launch_latency_ns: LATENCY,
  dependency_ns: "var(--communication)",
  blocked_copy_ns: "var(--memcpy)",
  graph_launch_ns: shade("runtime"),
  not_shown_ns: NOT_SHOWN[1],
  unexplained_ns: UNEXPLAINED[1],
};

/** What the page calls each other part of the time of a device, a rank, a step or a phase, and its color. */
const PARTS: Record<string, Part> = {
  not_shown: NOT_SHOWN,
  computation_ns: ["Computation", "var(--kernel)"],
  exposed_communication_ns: ["Exposed communication", "var(--communication)"],
  exposed_transfer_ns: ["Exposed transfer", COMMUNICATION[1]],
  exposed_wait_ns: ["Waiting for other ranks", tint("communication", 45)],
  exposed_copies_ns: ["Exposed copies", "var(--memcpy)"],
  idle_loading_ns: ["Waiting for data", "var(--dataloader)"],
  idle_collecting_ns: ["Garbage collection", "var(--python)"],
  idle_other_ns: ["Idle otherwise", EMPTY],
  idle_ns: ["Idle", EMPTY],
  kernel: KERNELS,
  communication: COMMUNICATION,
  copy: COPIES,
  launch: ["Launching", "var(--runtime)"],
  between_kernels: BETWEEN_EVENTS,
  unexplained: UNEXPLAINED,
  data: LOADING,
  host_operator: OPERATORS,
  host_python: PYTHON,
  host_annotation: ANNOTATIONS,
  host_unrecorded: UNRECORDED,
  host_sync: SYNCHRONIZING,
  all: ["All parts", "var(--other)"],
  computation: KERNELS,
  "device communication": ["Communication", tint("communication", 70)],
  "host communication": ["Communication of the host", shade("communication")],
  "launch latency": ["Launching: latency", LATENCY],
  "runtime call": ["Launching: calls", "var(--runtime)"],
  "between GPU events": BETWEEN_EVENTS,
  "unexplained wait": UNEXPLAINED,
  "data loading": LOADING,
  operator: OPERATORS,
  synchronization: SYNCHRONIZING,
  "between operators": ["Host outside operators", "var(--python)"],
  transfer: ["Transfer", COMMUNICATION[1]],
  collective: ["Collective, wait unknown", tint("communication", 45)],
  "before the step": ["Before the step", EMPTY],
  gemm: ["Matmuls", "var(--kernel)"],
  attention: ["Attention", tint("kernel", 82)],
  moe: ["Experts", tint("kernel", 70)],
  normalization: ["Normalization", tint("kernel", 58)],
  sampling: ["Sampling kernels", tint("kernel", 48)],
  other: ["Other kernels", tint("kernel", 38)],
  "idle: operators and launches": ["Idle: operators, launches", OPERATORS[1]],
  "idle: queued": ["Idle: work queued", UNEXPLAINED[1]],
  "idle: synchronizing": ["Idle: host synchronizing", SYNCHRONIZING[1]],
  "idle: waiting": ["Idle: waiting for a request", tint("runtime", 30)],
  "idle: input preparation": ["Idle: preparing inputs", ANNOTATIONS[1]],
  "idle: scheduling": ["Idle: scheduling", shade("annotation")],
  "idle: sampling": ["Idle: sampling", tint("module", 65)],
  "idle: detokenizing": ["Idle: detokenizing", shade("module")],
  "idle: other": ["Idle: other host code", PYTHON[1]],
  "idle: unrecorded": ["Idle: nothing recorded", "var(--other)"],
  "not shown": NOT_SHOWN,
};

/** The name and the color of a column. */
export function timePart(column: string): { name: string; color: string } {
  const [name, color] = PARTS[column] ??
    (column in COLORS ? [label(column), COLORS[column]!] : [column, "var(--other)"]);
  return { name, color };
}

const NEARLY_ALL = 0.95;

/** A cause as that of a whole: "mostly" it if some has another one, and none if half or more has. */
export const mostly = (cause: string, part: number, whole: number): string =>
  part > NEARLY_ALL * whole ? cause : 2 * part > whole ? `mostly ${cause}` : "";

/** The causes with launch latency and graph launches as one, as *Launches* counts them, the largest first. */
export function withLaunches<Cause extends { id: string; name: string; value: number }>(causes: Cause[]): Cause[] {
  const [latency, launch] = causes.filter(({ id }) => /^(launch_latency|graph_launch)_/.test(id));
  const rest = launch ? causes.filter((cause) => cause !== latency && cause !== launch) : causes;
  const both = launch
    ? [{ ...launch, name: "Launch latency and graph launches", value: latency!.value + launch.value }]
    : [];
  return [...both, ...rest].sort((a, b) => b.value - a.value);
}

/** The causes of half of a whole or more, the largest first, with their shares; a single one where it has that much. */
export function mostCauses(causes: { id: string; name: string; value: number }[], whole: number): string {
  let sum = 0;
  const largest = causes.filter(({ value }) => 2 * sum < whole && (sum += value));
  const words = ({ id, name }: { id: string; name: string }) =>
    id === "not_shown_ns" ? "it may have been busy" : uncapitalized(name);
  return largest.map((cause, i) => `${percent(cause.value / whole)} %${i ? "" : " of that"}: ${words(cause)}`).join(
    "; ",
  );
}
