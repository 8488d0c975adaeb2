/** A table's rows as cells of a matrix, in no more lines and columns than a picture has room for. */

import type { Value } from "../format/numbers.ts";

export interface Matrix {
  /** What each line and column is called: its first and last name, which are one where it isn't several. */
  lines: [first: string, last: string][];
  columns: [first: string, last: string][];
  /** Line by line the table's row of each cell: of several the one with the largest value; -1 where there is none. */
  rows: Int32Array;
}

const text = (value: Value): string => value === null ? "–" : String(value);

/** The names in order: of numbers by size, else as they come. */
function inOrder(values: Value[], rows: Uint32Array): string[] {
  const names = [...new Set(Array.from(rows, (row) => text(values[row] ?? null)))];
  return names.every((name) => /^\d+$/.test(name)) ? names.sort((a, b) => Number(a) - Number(b)) : names;
}

/** The names in so many groups of neighbors, as even as can be. */
function grouped(names: string[], most: number): { groups: [string, string][]; groupOf: Map<string, number> } {
  const each = Math.max(1, Math.ceil(names.length / most));
  const groups: [string, string][] = [];
  for (let i = 0; i < names.length; i += each) groups.push([names[i]!, names[Math.min(i + each, names.length) - 1]!]);
  return { groups, groupOf: new Map(names.map((name, i) => [name, Math.floor(i / each)])) };
}

/** The rows of a table by two of their columns. */
export function matrixOf(
  rows: Uint32Array,
  [line, column, value]: [Value[], Value[], Value[]],
  most: { lines: number; columns: number },
): Matrix {
  const ordered = Uint32Array.from(rows).sort();
  const lines = grouped(inOrder(line, ordered), most.lines);
  const columns = grouped(inOrder(column, ordered), most.columns);
  const cells = new Int32Array(lines.groups.length * columns.groups.length).fill(-1);
  for (const row of ordered) {
    const amount = value[row];
    if (typeof amount !== "number") continue;
    const at = lines.groupOf.get(text(line[row] ?? null))! * columns.groups.length +
      columns.groupOf.get(text(column[row] ?? null))!;
    if (cells[at]! < 0 || amount > Number(value[cells[at]!])) cells[at] = row;
  }
  return { lines: lines.groups, columns: columns.groups, rows: cells };
}

export const nameOf = ([first, last]: [string, string]): string => first === last ? first : `${first} … ${last}`;

/** Of the largest value: smaller differences stay pale. */
export const LEAST = 0.8;

/** The range of the color scale. Values that differ little are drawn alike, so that noise doesn't stand out. */
export function colorRange(values: Iterable<Value>): { low: number; high: number; isWidened: boolean } {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (typeof value !== "number") continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return { low: 0, high: 0, isWidened: false };
  const isWidened = high > 0 && high > low && low > high * LEAST;
  return { low: isWidened ? high * LEAST : low, high, isWidened };
}

const BEND = 0.6; // so that one wild cell doesn't leave all others white

/** How dark a value is drawn, from 0 to 1. */
export const darkness = (value: number, { low, high }: { low: number; high: number }): number =>
  high > low ? ((value - low) / (high - low)) ** BEND : 0;
