/** What the activity strip draws, column by column: work from below, idle time above it, by cause. */

import type { Table } from "../../api/types.ts";
import { uncapitalized } from "../../format/steps.ts";
import { mostly, timePart } from "../../format/time_parts.ts";

export interface Kind {
  name: string;
  color: string;
  columns: string[];
  isIdle?: boolean;
  /** Whether nothing ran on the device as far as the trace shows, but something may have. */
  isHidden?: boolean;
}

/** A part of the time, with the words and the color that it has in Idle and on the critical path. */
const kindOf = (part: string, columns = [part], isIdle = false): Kind => ({
  get name() {
    return uncapitalized(timePart(part).name); // which the catalogue says, later
  },
  color: timePart(part).color,
  columns,
  isIdle,
});
const idle = (part: string, columns?: string[]): Kind => kindOf(part, columns, true);

const COMMUNICATION = ["communication_ns"];

const DEVICE_KINDS: Kind[] = [
  kindOf("kernel", ["kernel_ns"]),
  kindOf("copy", ["copy_ns"]),
  kindOf("communication", COMMUNICATION),
  idle("late_data_loading_ns"),
  {
    name: "host in ops or annotations",
    color: timePart("late_operator_ns").color,
    columns: ["late_operator_ns", "late_annotation_ns"],
    isIdle: true,
  },
  idle("late_python_ns"),
  idle("late_unrecorded_ns"),
  idle("late_synchronizing_ns"),
  idle("blocked_copy_ns"),
  idle("launch", ["late_runtime_ns", "launch_latency_ns", "graph_launch_ns"]),
  idle("dependency_ns"),
  Object.assign(idle("not_shown_ns"), { isHidden: true }),
  idle("unexplained_ns"),
];

const HOST_KINDS: Kind[] = [
  kindOf("communication", COMMUNICATION),
  { name: "runtime calls", color: "var(--runtime)", columns: ["runtime_ns"] },
  kindOf("data", ["dataloader_ns"]),
  { name: "operators or annotations", color: "var(--cpu-exec)", columns: ["cpu_exec_ns"] },
  { name: "Python, or nothing recorded", color: "var(--other)", columns: ["other_ns"] },
];

/** All kinds, in the order in which they are stacked. */
export const KINDS = [...DEVICE_KINDS, ...HOST_KINDS];

/** One device, or the host: the time of its columns, and how much of each column each kind has. */
export interface Strip {
  device: number | null;
  begins: number[];
  lengths: number[];
  kinds: { kind: Kind; values: number[]; total: number }[];
  gaps: ({ from: number; length: number } | null)[];
}

/** How long a strip lasts in all, and which share of it is work. */
export const spanOf = ({ begins, lengths }: Strip) => ({ from: begins[0]!, to: begins.at(-1)! + lengths.at(-1)! });
export const busyShare = (strip: Strip): number => {
  const { from, to } = spanOf(strip);
  return strip.kinds.reduce((sum, { kind, total }) => sum + (kind.isIdle ? 0 : total), 0) / Math.max(1, to - from);
};

/** The strips of a table: the devices, then the host. */
export function stripsOf({ data }: Table): Strip[] {
  const rows = new Map<string, number[]>();
  data.scope!.forEach((scope, row) => {
    const key = scope === "host" ? "host" : String(data.device![row]);
    rows.get(key)?.push(row) ?? rows.set(key, [row]);
  });
  return [...rows].map(([key, own]) => {
    const numbers = (name: string) => own.map((row) => Number(data[name]?.[row] ?? 0));
    const kinds = (key === "host" ? HOST_KINDS : DEVICE_KINDS).map((kind) => {
      const columns = kind.columns.map(numbers);
      const values = own.map((_, i) => columns.reduce((sum, column) => sum + column[i]!, 0));
      return { kind, values, total: values.reduce((sum, value) => sum + value, 0) };
    });
    const gaps = own.map((row) => {
      const length = data.gap_ns?.[row];
      return typeof length === "number" ? { from: Number(data.gap_start_ns![row]), length } : null;
    });
    return {
      device: key === "host" ? null : Number(key),
      begins: numbers("time_ns"),
      lengths: numbers("dur_ns"),
      kinds: kinds.filter(({ total }) => total > 0),
      gaps,
    };
  });
}

/** The strip with each column of the kind that takes most of it: a low strip can't show parts. */
export const dominant = (strip: Strip): Strip => {
  const most = strip.lengths.map((_, i) => Math.max(...strip.kinds.map(({ values }) => values[i]!)));
  const kinds = strip.kinds.map((each) => ({
    ...each,
    values: each.values.map((value, i) => value > 0 && value === most[i] ? strip.lengths[i]! : 0),
  }));
  return { ...strip, kinds };
};

/** The left edge of each column and the right edge of the last, on whole pixels: neighbors leave no seam. */
export function edgesOf(strip: Strip, width: number): number[] {
  const { from, to } = spanOf(strip);
  const x = (time: number) => Math.round(((time - from) / Math.max(1, to - from)) * width);
  return [...strip.begins.map(x), width];
}

/** One outline for each kind, stacked from the bottom in a box that is `height` high. */
export function outlines({ kinds, lengths }: Strip, edges: number[], height: number): string[] {
  const below = lengths.map(() => 0);
  return kinds.map(({ values }) =>
    values.map((value, i) => {
      const start = below[i]!;
      below[i] = start + value;
      const [y, end] = [below[i]!, start].map((sum) => height - (sum / Math.max(1, lengths[i]!)) * height);
      const width = edges[i + 1]! - edges[i]!;
      return value > 0 && width > 0 ? `M${edges[i]} ${y!.toFixed(1)}h${width}V${end!.toFixed(1)}h${-width}Z` : "";
    }).join("")
  );
}

/** A gap that is wide enough to name, with what caused more than half of it. */
export interface WideGap {
  x: number;
  width: number;
  length: number;
  cause: string;
  color: string;
}

export function wideGaps(strip: Strip, edges: number[], least: number): WideGap[] {
  const { from, to } = spanOf(strip);
  const width = edges.at(-1)!;
  const x = (time: number) => Math.max(0, Math.min(width, ((time - from) / Math.max(1, to - from)) * width));
  const columns = new Map<number, number[]>();
  strip.gaps.forEach((gap, i) => gap && (columns.get(gap.from)?.push(i) ?? columns.set(gap.from, [i])));
  return [...columns.values()].flatMap((own) => {
    const gap = strip.gaps[own[0]!]!;
    const [left, right] = [x(gap.from), x(gap.from + gap.length)];
    const idle = strip.kinds.filter(({ kind }) => kind.isIdle);
    const sums = idle.map(({ values }) => own.reduce((sum, i) => sum + values[i]!, 0));
    const most = Math.max(...sums), whole = sums.reduce((sum, value) => sum + value, 0);
    const kind = idle[sums.indexOf(most)]?.kind, cause = kind ? mostly(kind.name, most, whole) : "";
    const color = cause ? kind!.color : "var(--quiet)";
    return kind && right - left > least ? [{ x: left, width: right - left, length: gap.length, cause, color }] : [];
  });
}

/** The column at a pixel. */
export const columnAt = (edges: number[], x: number): number => {
  const after = edges.findIndex((edge) => edge > x);
  return Math.max(0, (after < 0 ? edges.length : after) - 1 - (after < 0 ? 1 : 0));
};

interface Label {
  x: number;
  width: number;
  isOutlier?: boolean;
}

/** Which of some labels fit into a row, each at its own place: outliers first, then left to right. */
export function fitting(labels: Label[], room: number, gap = 8): boolean[] {
  const placed = new Set<Label>();
  for (const label of labels.toSorted((a, b) => Number(b.isOutlier ?? 0) - Number(a.isOutlier ?? 0))) {
    const isFree = [...placed].every(({ x, width }) => x >= label.x + label.width + gap || label.x >= x + width + gap);
    if (isFree && label.x + label.width <= room) placed.add(label);
  }
  return labels.map((label) => placed.has(label));
}
