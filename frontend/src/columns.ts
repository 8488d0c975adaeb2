/** A table made ready for drawing: what is empty is left out, each column has one scale, and what is searched is joined. */

import type { Column, Table, ViewEntry } from "./api.ts";
import { cell, label, quantity, type Scale, scaleFor, type Value } from "./format.ts";
import { ranks } from "./order.ts";

export interface DrawnColumn extends Column {
  title: string;
  values: Value[];
  scale: Scale;
  isNumeric: boolean;
  /** What a full bar in a cell means; null where there are no bars. */
  bar: { of: number; meaning: string } | null;
  isSummed: boolean;
}

export interface Ready {
  columns: DrawnColumn[];
  emptyColumns: DrawnColumn[];
  count: number;
  /** All text columns of each row, as they are and in lower case. */
  texts: string[];
  lower: string[];
  rank: (name: string) => Float64Array;
  /** What to call each row: its key. */
  nameOf: (row: number) => string;
}

const NUMERIC = new Set(["count", "number", "instant", "duration", "bytes", "fraction"]);
const COUNTED = new Set(["calls", "count"]);

function bar(column: Column, values: Value[], isShare: boolean): DrawnColumn["bar"] {
  const isAmount = column.kind === "duration" || column.kind === "bytes";
  if (!isShare && !isAmount) return null;
  const numbers = values.filter((value): value is number => typeof value === "number");
  const total = isShare
    ? numbers.reduce((sum, value) => sum + value, 0)
    : numbers.reduce((most, value) => Math.max(most, value), 0);
  if (!(total > 0)) return null;
  const of = `${isShare ? "the column's sum" : "the largest value"}, ${quantity(total, column.kind)}`;
  return { of: total, meaning: `A full bar is ${of}.` };
}

/** The column's own scale; a column of zeros has that of the weight, so that its unit misleads nobody. */
function scaleOf({ kind }: Column, values: Value[], table: Table, weight: string | null): Scale {
  const isZero = values.every((value) => !value);
  const weighty = table.columns.find(({ name }) => name === weight);
  return isZero && weighty?.kind === kind ? scaleFor(kind, table.data[weighty.name]!) : scaleFor(kind, values);
}

function drawn(column: Column, table: Table, entry: ViewEntry): DrawnColumn {
  const values = table.data[column.name] ?? [];
  const isShare = NUMERIC.has(column.kind) && (column.name === entry.weight || entry.charts.includes(column.name));
  return {
    ...column,
    title: label(column.name),
    values,
    scale: scaleOf(column, values, table, entry.weight),
    isNumeric: NUMERIC.has(column.kind),
    bar: bar(column, values, isShare),
    isSummed: isShare || COUNTED.has(column.name),
  };
}

function prepare(table: Table, entry: ViewEntry): Ready {
  const all = table.columns.map((column) => drawn(column, table, entry));
  const count = all[0]?.values.length ?? 0;
  const isEmpty = ({ values }: DrawnColumn) => count > 0 && values.every((value) => value === null);
  const searched = all.filter(({ kind }) => kind === "text");
  const texts = Array.from({ length: count }, (_, row) => searched.map(({ values }) => values[row] ?? "").join("\n"));
  const named = all.filter(({ name, kind }) => kind === "text" && (!entry.key.length || entry.key.includes(name)));
  const ranked = new Map<string, Float64Array>();
  return {
    columns: all.filter((column) => !isEmpty(column)),
    emptyColumns: all.filter(isEmpty),
    count,
    texts,
    lower: texts.map((text) => text.toLowerCase()),
    rank: (name) => {
      if (!ranked.has(name)) ranked.set(name, ranks(table.data[name] ?? []));
      return ranked.get(name)!;
    },
    nameOf: (row) => named.map(({ values }) => values[row]).filter((value) => value !== null).join(" · "),
  };
}

const prepared = new WeakMap<Table, Ready>();

/** The table ready for drawing; made once for each answer. */
export function ready(table: Table, entry: ViewEntry): Ready {
  const known = prepared.get(table) ?? prepare(table, entry);
  prepared.set(table, known);
  return known;
}

/** Keeps a spreadsheet from running a trace's text as a formula, and a line break from ending the row. */
const inert = (text: string) => (/^[=+\-@]/.test(text) ? "'" : "") + text;

const plain = (value: Value | undefined) =>
  value === null || value === undefined ? "" : typeof value === "string" ? inert(value) : String(value);

/** The rows in base units with the columns' own names, for a spreadsheet's clipboard. */
export function tsv(columns: Column[], data: Table["data"], rows: Uint32Array): string {
  const line = (row: number) => columns.map(({ name }) => plain(data[name]?.[row]).replace(/\s+/g, " ")).join("\t");
  return [columns.map(({ name }) => name).join("\t"), ...Array.from(rows, line)].join("\n");
}

/** The same as a file after RFC 4180. */
export function csv(columns: Column[], data: Table["data"], rows: Uint32Array): string {
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row: number) => columns.map(({ name }) => quoted(plain(data[name]?.[row]))).join(",");
  return [columns.map(({ name }) => name).join(","), ...Array.from(rows, line), ""].join("\r\n");
}

/** The longest text that a column shows, by characters. */
export function widest({ values, kind, scale }: DrawnColumn): string {
  if (kind !== "text") {
    const numbers = values.filter((value): value is number => typeof value === "number");
    const ends = [numbers.reduce((a, b) => Math.max(a, b), 0), numbers.reduce((a, b) => Math.min(a, b), 0)];
    return ends.map((value) => cell(value, kind, scale)).reduce((a, b) => (b.length > a.length ? b : a), "<0.0");
  }
  return values.reduce<string>((most, value) => (String(value ?? "").length > most.length ? String(value) : most), "");
}
