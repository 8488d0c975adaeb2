/** Which rows of a table are shown, and in which order: a list of row numbers over columns that never move. */

import type { Value } from "../format/numbers.ts";
import { finish, whenIdle, workInSlices } from "./time_slices.ts";

const SLICE = 2000; // values from one pause to the next: a millisecond or two

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

export interface Rows {
  rows: Uint32Array;
  /** The same rows in the table's own order: the same object whatever they are sorted by. */
  matches: Uint32Array;
  keys: SortKey[];
  problem: string;
}

/** What rows are found in. */
export interface Searched {
  /** The searchable text of each row, as it is and in lower case. */
  texts: string[];
  lower: string[];
  ranks: ColumnRanks;
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

/** The rows that match the filter; `texts` holds the searchable text of each row. It pauses between slices. */
export function* filterRows(filter: Filter, texts: string[], lower: string[]): Generator<void, Uint32Array> {
  const rows = new Uint32Array(texts.length);
  let count = 0;
  for (let row = 0; row < texts.length; row++) {
    if (matches(filter, texts[row]!, lower[row]!)) rows[count++] = row;
    if (row % SLICE === 0) yield;
  }
  return rows.subarray(0, count);
}

/** Reads "-device_self_ns,name": descending by the first, then ascending by the second. */
export const parseSort = (text: string): SortKey[] =>
  text.split(",").map((part) => ({ name: part.replace(/^-/, ""), descending: part.startsWith("-") }));

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

/** The texts as keys that `<` orders; it pauses between slices. A missing text's key means nothing. */
function* sortingKeys(values: Value[]): Generator<void, string[]> {
  const keys: string[] = [];
  for (const value of values) {
    keys.push(value === null ? "" : sortingText(String(value)));
    if (keys.length % SLICE === 0) yield;
  }
  return keys;
}

/** The rows in the order of their keys: a bottom-up merge sort that pauses between slices. */
function* byTexts(rows: Uint32Array, keys: string[]): Generator<void, Uint32Array> {
  const count = rows.length;
  let merged: Uint32Array = new Uint32Array(count);
  for (let run = 1, steps = 1; run < count; run *= 2) {
    for (let from = 0; from < count; from += 2 * run) {
      const middle = Math.min(from + run, count), end = Math.min(from + 2 * run, count);
      for (let left = from, right = middle, at = from; at < end; at++, steps++) {
        const isLeft = left < middle && (right >= end || !(keys[rows[right]!]! < keys[rows[left]!]!));
        merged[at] = rows[isLeft ? left++ : right++]!;
        if (steps % SLICE === 0) yield;
      }
    }
    [rows, merged] = [merged, rows];
  }
  return rows;
}

/** The rows in the order of their bins, those of a bin as they came: a counting sort. */
export function byBins(rows: Uint32Array, bins: Uint16Array | Int32Array, most: number): Uint32Array {
  const starts = new Uint32Array(most + 2), after = new Uint32Array(rows.length);
  for (let i = 0; i < rows.length; i++) starts[bins[rows[i]!]! + 1]!++;
  for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!;
  for (let i = 0; i < rows.length; i++) after[starts[bins[rows[i]!]!]!++] = rows[i]!;
  return after;
}

/** The rows in the order of their numbers: a radix sort by four digits of 16 bits that pauses after each. */
function* byNumbers(rows: Uint32Array, numbers: Float64Array): Generator<void, Uint32Array> {
  const halves = new Uint32Array(numbers.slice().buffer); // the low one first, as wherever browsers run
  for (let high = 1; high < halves.length; high += 2) {
    const turned = halves[high]! >>> 31 ? -1 : 0; // the bits of negative numbers are in the opposite order
    halves[high - 1]! ^= turned;
    halves[high]! ^= turned | (1 << 31);
  }
  const all = new Uint16Array(halves.buffer), digits = new Uint16Array(numbers.length);
  for (let digit = 0; digit < 4; digit++) {
    let differing = 0;
    for (let i = 0; i < digits.length; i++) {
      digits[i] = all[4 * i + digit]!;
      differing |= digits[i]! ^ digits[0]!;
    }
    if (differing) rows = byBins(rows, digits, 0xffff);
    yield;
  }
  return rows;
}

/** The places of the values among the distinct ones in order; a missing value has -1. */
function* rankSlices(values: Value[]): Generator<void, Int32Array> {
  const count = values.length, ranks = new Int32Array(count).fill(-1), numbers = new Float64Array(count);
  let present = new Uint32Array(count), found = 0, isOfTexts = false;
  for (let row = 0; row < count; row++) {
    const value = values[row]!;
    if (value === null) continue;
    present[found++] = row;
    if (typeof value === "string") isOfTexts = true;
    else numbers[row] = Number(value) + 0; // there is one zero
  }
  present = present.subarray(0, found);
  const keys = isOfTexts ? yield* sortingKeys(values) : numbers;
  const rows = keys instanceof Float64Array ? yield* byNumbers(present, keys) : yield* byTexts(present, keys);
  for (let at = 0, rank = -1; at < found; at++) {
    const row = rows[at]!;
    if (at === 0 || keys[row] !== keys[rows[at - 1]!]) rank++;
    ranks[row] = rank;
  }
  return ranks;
}

const AHEAD_MS = 3; // a small part of a frame

/** The ranks of the columns of a table, each computed once. */
export class ColumnRanks {
  readonly #begun = new Map<string, Generator<void, Int32Array>>();
  readonly #done = new Map<string, Int32Array>();

  constructor(readonly columns: Columns) {}

  /** Whether a column is ranked. */
  isComplete = (name: string): boolean => this.#done.has(name);

  /** The places of a column's values among its distinct ones in order, -1 for a missing one; it pauses between slices. */
  *slices(name: string): Generator<void, Int32Array> {
    const slices = this.#begun.get(name) ?? rankSlices(this.columns[name] ?? []);
    this.#begun.set(name, slices);
    while (!this.isComplete(name)) { // another request may have gone on with it meanwhile
      const { done, value } = slices.next();
      if (done) this.#done.set(name, value);
      else yield;
    }
    return this.#done.get(name)!;
  }

  /** The same without a pause. */
  of = (name: string): Int32Array => finish(this.slices(name));

  /** Ranks columns before somebody sorts by them, a little at a time; returns what stops it. */
  computeAhead(names: string[]): () => void {
    function* all(ranks: ColumnRanks) {
      for (const name of names) yield* ranks.slices(name);
    }
    return workInSlices(all(this), () => {}, AHEAD_MS, whenIdle);
  }
}

/**
 * The rows in order; missing values come last whichever way it goes, equal rows stay as they came.
 *
 * A counting sort by each key, the last one first (radix sort); it pauses after each.
 */
export function* sortRows(
  rows: Uint32Array,
  keys: { rank: Int32Array; descending: boolean }[],
): Generator<void, Uint32Array> {
  for (const { rank, descending } of keys.toReversed()) {
    const bins = new Int32Array(rank.length);
    let most = 0;
    for (let row = 0; row < rank.length; row++) most = Math.max(most, rank[row]!);
    for (let row = 0; row < rank.length; row++) {
      bins[row] = rank[row]! < 0 ? most + 1 : descending ? most - rank[row]! : rank[row]!;
    }
    rows = byBins(rows, bins, most + 1);
    yield;
  }
  return rows;
}

const lastMatches = new WeakMap<string[], { text: string; matches: Uint32Array }>();

/** The rows that match a filter, in an order of at most two of the columns that there are; it pauses between slices. */
export function* findRows({ texts, lower, ranks }: Searched, text: string, sort: string): Generator<void, Rows> {
  const filter = parseFilter(text), last = lastMatches.get(texts);
  const matches = last?.text === text ? last.matches : yield* filterRows(filter, texts, lower);
  lastMatches.set(texts, { text, matches });
  const keys = parseSort(sort).filter(({ name }) => name in ranks.columns).slice(0, 2), ranked = [];
  for (const { name, descending } of keys) ranked.push({ rank: yield* ranks.slices(name), descending });
  return { rows: yield* sortRows(matches, ranked), matches, keys, problem: filter.problem };
}
