/** Which rows of a table are shown, and in which order: a list of row numbers over columns that never move. */

import type { Value } from "../format/numbers.ts";

export type Columns = Record<string, Value[]>;
export interface SortKey {
  name: string;
  descending: boolean;
}
export interface Filter {
  words: string[];
  excluded: string[];
  pattern: RegExp | null;
  problem: string;
}

/** Parses `required words -excluded words re:regular expression`. */
export function parseFilter(text: string): Filter {
  const filter: Filter = { words: [], excluded: [], pattern: null, problem: "" };
  const [, plain, source] = /^(.*?)(?:(?:^|\s)re:(.*))?$/s.exec(text)!;
  for (const word of plain!.toLowerCase().split(/\s+/)) {
    if (word.length > 1 && word.startsWith("-")) filter.excluded.push(word.slice(1));
    else if (word && word !== "-") filter.words.push(word);
  }
  try {
    if (source?.trim()) filter.pattern = new RegExp(source.trim(), "i");
  } catch (error) {
    filter.problem = error instanceof Error ? error.message : String(error);
  }
  return filter;
}

const matches = ({ words, excluded, pattern }: Filter, text: string, lower: string): boolean =>
  words.every((word) => lower.includes(word)) && !excluded.some((word) => lower.includes(word)) &&
  (!pattern || pattern.test(text));

/** Whether a text matches the filter. */
export const matchesFilter = (filter: Filter, text: string): boolean => matches(filter, text, text.toLowerCase());

/** The rows that match the filter; `texts` holds the searchable text of each row. */
export function filterRows(filter: Filter, texts: string[], lower: string[]): Uint32Array {
  const rows = new Uint32Array(texts.length);
  let count = 0;
  for (let row = 0; row < texts.length; row++) {
    if (matches(filter, texts[row]!, lower[row]!)) rows[count++] = row;
  }
  return rows.subarray(0, count);
}

/** Reads "-device_self_ns,name": descending by the first, then ascending by the second; unknown names are left out. */
export function parseSort(text: string, columns: Columns): SortKey[] {
  const keys = text.split(",").map((part) => ({ name: part.replace(/^-/, ""), descending: part.startsWith("-") }));
  return keys.filter(({ name }) => name in columns).slice(0, 2);
}

export const printSort = (keys: SortKey[]): string =>
  keys.map(({ name, descending }) => (descending ? "-" : "") + name).join(",");

/** The order after a click on a heading: numbers begin with the largest; with `second` it refines the order so far. */
export function nextSort(keys: SortKey[], name: string, numeric: boolean, second: boolean): SortKey[] {
  const current = keys.find((key) => key.name === name);
  const next = { name, descending: current ? !current.descending : numeric };
  if (!second || keys.length === 0) return [next];
  const first = keys[0]!;
  return first.name === name ? [next, ...keys.slice(1)] : [first, next];
}

/** Sorts by code units as the text sorts by its words, in any case, and by its numbers: longer ones are larger. */
const sortingText = (text: string) =>
  text.toLowerCase().replace(/\d+/g, (digits) => String.fromCharCode(47 + digits.length) + digits);

/** The places of the values among the distinct ones in order; a missing value has -1. */
export function ranks(values: Value[]): Int32Array {
  const isText = values.some((value) => typeof value === "string");
  const keys = values.map((value) => (value === null ? value : isText ? sortingText(String(value)) : Number(value)));
  const distinct = [...new Set(keys)].filter((key) => key !== null);
  const sorted = isText ? distinct.sort() : [...Float64Array.from(distinct as number[]).sort()];
  const place = new Map(sorted.map((key, i) => [key, i]));
  return Int32Array.from(keys, (key) => place.get(key!) ?? -1);
}

/**
 * The rows in order; missing values come last whichever way it goes, equal rows stay as they came.
 *
 * A counting sort by each key, the last one first (radix sort).
 */
export function sortRows(rows: Uint32Array, keys: { rank: Int32Array; descending: boolean }[]): Uint32Array {
  return keys.reduceRight((before, { rank, descending }) => {
    const most = rank.reduce((a, b) => Math.max(a, b), 0);
    const bin = (row: number) => (rank[row]! < 0 ? most + 1 : descending ? most - rank[row]! : rank[row]!);
    const starts = new Uint32Array(most + 3), after = new Uint32Array(before.length);
    for (const row of before) starts[bin(row) + 1]!++;
    for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!;
    for (const row of before) after[starts[bin(row)]!++] = row;
    return after;
  }, rows);
}
