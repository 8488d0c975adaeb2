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

/** Numbers that sort like the values; a missing value is NaN. */
export function ranks(values: Value[]): Float64Array {
  if (!values.some((value) => typeof value === "string")) {
    return Float64Array.from(values, (value) => (value === null ? NaN : Number(value)));
  }
  const { compare } = new Intl.Collator("en", { numeric: true });
  const distinct = [...new Set(values as (string | null)[])].filter((text) => text !== null).sort(compare);
  const rank = new Map(distinct.map((text, place) => [text, place]));
  return Float64Array.from(values as (string | null)[], (text) => rank.get(text!) ?? NaN);
}

/** The rows in order; missing values come last whichever way it goes, equal rows stay as they came. */
export function sortRows(rows: Uint32Array, keys: { rank: Float64Array; descending: boolean }[]): Uint32Array {
  if (!keys.length) return rows;
  return rows.slice().sort((a, b) => {
    for (const { rank, descending } of keys) {
      const x = rank[a]!, y = rank[b]!;
      if (x === y) continue;
      if (x !== x || y !== y) {
        if (x !== x && y !== y) continue;
        return x !== x ? 1 : -1;
      }
      return descending ? y - x : x - y;
    }
    return a - b;
  });
}
