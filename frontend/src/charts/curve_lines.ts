/** The data of curves: which rows make a line, the values at a time, and the ticks of the axes. */

import type { PictureOf, Table } from "../api/types.ts";
import type { DrawnColumn, Ready } from "../table/columns.ts";
import { exact, type Kind, label, quantity, type Value } from "../format/numbers.ts";
import { deviceNoun } from "../format/vendor_words.ts";
import { roundStep } from "./chart_geometry.ts";

export interface Line {
  name: string;
  title: string;
  /** The number of its color; of stacked lines it doesn't depend on which others there are. */
  ink: number;
  values: (number | null)[];
  /** The mean until the next row, where rows are left out; else each value holds until then. */
  means?: number[];
  /** Where the line is drawn: the values, on top of those of the lines behind it if they are stacked. */
  drawn: (number | null)[];
}

/** The lines of one series that share a unit, drawn together. A value holds until the next row. */
export interface Panel {
  key: string;
  /** The values of the series columns, such as a device; empty if there is one series. */
  title: string;
  of: Record<string, Value>;
  kind: Kind;
  times: number[];
  lines: Line[];
  /** The mark of each row, such as "peak"; null if it has none. */
  marks: (string | null)[];
  /** Facts true of all rows, such as that levels are relative, with their definitions. */
  notes: { text: string; doc: string }[];
  /** Whether the lines lie on top of each other. */
  isStacked: boolean;
}

const nameOf = ({ name, kind }: DrawnColumn, value: Value): string =>
  kind === "text" ? String(value) : `${name === "device" ? deviceNoun() : label(name)} ${value}`;

/** Rows grouped by the series columns, in the order of the table. */
function groups(series: DrawnColumn[], count: number): Map<string, number[]> {
  const bySeries = new Map<string, number[]>();
  for (let row = 0; row < count; row++) {
    const key = JSON.stringify(series.map(({ values }) => values[row] ?? null));
    const rows = bySeries.get(key);
    if (rows) rows.push(row);
    else bySeries.set(key, [row]);
  }
  return bySeries;
}

/** The sums of the lines' values; a missing one counts as 0. */
const stacked = (lines: { values: (number | null)[] }[]): number[] =>
  lines[0]!.values.map((_, row) => lines.reduce((sum, { values }) => sum + (values[row] ?? 0), 0));

/** One panel for each series and unit; lines without any value are left out, and stacked ones that are always 0. */
export function panels(table: Table, ready: Ready, picture: PictureOf<"lines">): Panel[] {
  const time = table.columns.find(({ kind }) => kind === "instant")!;
  const drawn = ready.columns.filter(({ name }) => picture.values.includes(name));
  if (picture.is_stacked) drawn.reverse(); // the highest one first
  const series = ready.columns.filter(({ name }) => picture.series.includes(name));
  const facts = ready.columns.filter(({ kind }) => kind === "bool");
  const kinds = [...new Set(drawn.map(({ kind }) => kind))];
  return [...groups(series, ready.count)].flatMap(([key, rows]) => {
    const at = <T>(values: T[]) => rows.map((row) => values[row]!);
    const marked = picture.marks ? at(table.data[picture.marks]!) as (string | null)[] : rows.map(() => null);
    const meansOf = (name: string) => {
      const column = picture.means?.[picture.values.indexOf(name)];
      return column ? at(table.data[column]!) as number[] : undefined;
    };
    const notes = facts.filter(({ values }) => at(values).every((value) => value === true));
    return kinds.map((kind) => ({
      key: `${key} ${kind}`,
      title: series.map((column) => nameOf(column, column.values[rows[0]!]!)).join(" · "),
      of: Object.fromEntries(series.map(({ name, values }) => [name, values[rows[0]!]!])),
      kind,
      times: at(table.data[time.name]!) as number[],
      lines: drawn.filter((column) => column.kind === kind)
        .map(({ name, title, values }) => ({ name, title, values: at(values) as (number | null)[] }))
        .filter(({ values }) => values.some((value) => picture.is_stacked ? value : value !== null))
        .map((line, i, lines) => ({
          ...line,
          means: meansOf(line.name),
          ink: picture.is_stacked ? picture.values.indexOf(line.name) : i,
          drawn: picture.is_stacked ? stacked(lines.slice(i)) : line.values,
        })),
      marks: marked,
      isStacked: picture.is_stacked,
      notes: notes.map(({ name, doc }) => ({ text: label(name.replace(/^(is|has)_/, "")), doc })),
    })).filter(({ lines }) => lines.length);
  });
}

/** The last row that begins at a time or before it; -1 if there is none. `times` ascend. */
export function rowAt(times: number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The lowest and the highest value that holds at some moment from one time to another; null if none does. */
export function extremes({ times }: Panel, { values }: Line, from: number, to: number): [number, number] | null {
  let range: [number, number] | null = null;
  for (let row = Math.max(0, rowAt(times, from)); row < times.length && times[row]! <= to; row++) {
    const value = values[row];
    if (value === null || value === undefined) continue;
    range = range ? [Math.min(range[0], value), Math.max(range[1], value)] : [value, value];
  }
  return range;
}

/** The mean over the time from one moment to another in which a value holds, and the share of that; null if none does. */
export function meanOver(
  { times }: Panel,
  { values, means = [] }: Line,
  from: number,
  to: number,
): [number, number] | null {
  let sum = 0, whole = 0;
  for (const [row, value] of values.entries()) {
    const held = Math.min(to, times[row + 1] ?? -Infinity) - Math.max(from, times[row]!);
    if (value === null || held <= 0) continue;
    sum += (means[row] ?? value) * held;
    whole += held;
  }
  return whole > 0 ? [sum / whole, whole / (to - from)] : null;
}

/** The mean of a line in each of so many equal parts of the time of its rows; the last one once more at the end. */
export function partMeans({ times }: Panel, { means }: Line, count: number): { times: number[]; values: number[] } {
  const from = times[0]!, pitch = (times.at(-1)! - from) / count, sums = Array<number>(count).fill(0);
  const begins = Array.from({ length: count + 1 }, (_, i) => from + i * pitch);
  let part = 0;
  for (let row = 0; row + 1 < times.length; row++) {
    for (let begin = times[row]!, until = times[row + 1]!; begin < until;) {
      while (part + 1 < count && begin >= begins[part + 1]!) part++;
      const end = part + 1 < count ? Math.min(until, begins[part + 1]!) : until;
      sums[part]! += means![row]! * (end - begin);
      begin = end;
    }
  }
  return { times: begins, values: [...sums, sums.at(-1)!].map((sum) => sum / pitch) };
}

/** The row that makes a line by itself: the last one, whose value holds for no time, if the one before has none. */
export const isolatedRows = (values: (number | null)[]): number[] =>
  values.length && values.at(-1) !== null && (values.at(-2) ?? null) === null ? [values.length - 1] : [];

/** From where to where a value axis goes: zero is always on it. */
export function span(lines: Pick<Line, "drawn">[], kind: Kind): [number, number] {
  let [low, high] = [0, kind === "fraction" ? 1 : 0];
  for (const { drawn } of lines) {
    for (const value of drawn) {
      low = Math.min(low, value ?? 0);
      high = Math.max(high, value ?? 0);
    }
  }
  return high > low ? [low, high] : [0, 1];
}

/** Round numbers, or integers, from at most `low` to at least `high`, about `count` of them. */
export function marksAround(low: number, high: number, count: number, isWhole = false): number[] {
  const step = roundStep((high - low) / count, isWhole);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** Round numbers between two, about `count` of them, and two at least: one tells no scale. */
export function marksWithin(from: number, to: number, count: number): number[] {
  if (!(to > from)) return [from];
  const step = roundStep((to - from) / count);
  const first = Math.ceil(from / step - 1e-9), length = Math.floor(to / step + 1e-9) - first + 1;
  return length < 2 ? marksWithin(from, to, count + 1) : Array.from({ length }, (_, i) => (first + i) * step);
}

/** How many decimals distinguish the marks. */
export function decimalsOf(marks: number[]): number {
  const step = marks.length > 1 ? marks[1]! - marks[0]! : 1;
  return [0, 1, 2, 3, 4, 5, 6].find((places) => Math.abs(step * 10 ** places % 1) < 1e-6) ?? 6;
}

/** Describes the values at a time. */
export function describeMoment(panel: Panel, time: number, from: number, to: number): string {
  const row = rowAt(panel.times, time);
  const when = `${panel.title ? `${panel.title} at ` : "At "}${quantity(time, "instant")} (${exact(time, "instant")})`;
  const lineTexts = panel.lines.map((line) => {
    const value = row < 0 ? null : line.values[row]!;
    const extent = extremes(panel, line, from, to);
    const range = extent && extent[1] > extent[0]
      ? `; ${quantity(extent[0], panel.kind)} to ${quantity(extent[1], panel.kind)} within this pixel`
      : "";
    return value === null
      ? `${line.title}: missing`
      : `${line.title}: ${quantity(value, panel.kind)} (${exact(value, panel.kind)})${range}`;
  });
  const mark = row >= 0 && panel.times[row]! >= from ? panel.marks[row] : null; // not all the while that the row holds
  return [when, ...lineTexts, ...(mark ? [mark] : [])].join("\n");
}
