import { deepStrictEqual as same, match, strictEqual as is } from "node:assert/strict";
import { ColumnRanks, filterRows, findRows, nextSort, parseFilter, printSort, sortRows } from "../src/table/order.ts";
import { finish } from "../src/table/time_slices.ts";
import type { Value } from "../src/format/numbers.ts";
import CASES from "./filters.json" with { type: "json" };

const ranks = (values: Value[]) => new ColumnRanks({ only: values }).of("only");

const { texts: TEXTS, matches: MATCHES } = CASES;
const LOWER = TEXTS.map((text) => text.toLowerCase());
const rows = (filter: string) => [...finish(filterRows(parseFilter(filter), TEXTS, LOWER))];
const sorted = (...of: Parameters<typeof sortRows>) => [...finish(sortRows(...of))];

Deno.test("a filter lets the same texts through as the server's search", () => {
  for (const [filter, expected] of MATCHES) same(rows(filter as string), expected, `the filter ${filter}`);
});

Deno.test("a broken pattern is reported and hides nothing", () => {
  match(parseFilter("re:(").problem, /expression/);
  same(rows("conv re:("), [0, 3]);
});

Deno.test("missing values come last in both directions, equal rows stay in place", () => {
  const rank = ranks([3, null, 1, 3]);
  const all = Uint32Array.of(0, 1, 2, 3);
  same(sorted(all, [{ rank, descending: false }]), [2, 0, 3, 1]);
  same(sorted(all, [{ rank, descending: true }]), [0, 3, 2, 1]);
});

Deno.test("texts sort by the numbers in them", () => {
  const rank = ranks(["step 10", "step 9", null]);
  same(sorted(Uint32Array.of(0, 1, 2), [{ rank, descending: false }]), [1, 0, 2]);
});

Deno.test("texts sort by their words in any case, and by numbers of any length", () => {
  const texts = ["b", "A 10", "a 9", "a", "B 2", "a 123456789012", "a9b", "a10b", "a-b"];
  const order = sorted(Uint32Array.from(texts.keys()), [{ rank: ranks(texts), descending: false }]);
  same(order.map((row) => texts[row]), ["a", "a 9", "A 10", "a 123456789012", "a-b", "a9b", "a10b", "b", "B 2"]);
});

Deno.test("rows are in the order that a comparison of each pair gives, whatever the keys and the filter", () => {
  let state = 7;
  const random = (below: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  for (let round = 0; round < 100; round++) {
    const columns = [0, 1].map(() => Array.from({ length: 40 }, () => (random(5) ? random(7) - 3.5 : null)));
    const keys = columns.map((values) => ({ values, rank: ranks(values), descending: random(2) === 1 }));
    const rows = Uint32Array.from({ length: 40 }, (_, row) => row).filter(() => random(4) > 0);
    const compare = (a: number, b: number) => {
      for (const { values, descending } of keys) {
        const [x, y] = [values[a]!, values[b]!];
        if (x === y) continue;
        return x === null ? 1 : y === null ? -1 : descending ? y - x : x - y;
      }
      return a - b;
    };
    same(sorted(rows, keys), [...rows].sort(compare));
  }
});

Deno.test("a long table's columns are ranked ahead, a little at a time, as they are on demand", async () => {
  const numbers = Array.from({ length: 20_000 }, (_, row) => row % 7 ? (row * 7919) % 10_007 : null);
  const columns = { numbers, texts: numbers.map((value) => value === null ? null : `op ${value}`) };
  const expected = numbers.map((value) => value === null ? -1 : value);
  const distinct = [...new Set(numbers)].filter((value) => value !== null).sort((a, b) => a - b);
  const ranked = new ColumnRanks(columns);
  const stop = ranked.computeAhead(["numbers", "texts"]);
  while (!ranked.isComplete("texts")) await new Promise((resolve) => setTimeout(resolve));
  stop();
  same([...ranked.of("numbers")].map((rank) => distinct[rank] ?? -1), expected);
  same(ranked.of("texts"), ranked.of("numbers"));
  same(new ColumnRanks(columns).of("texts"), ranked.of("texts"));
});

Deno.test("numbers of any size and sign are ranked in order, equal ones alike, missing ones not at all", () => {
  const values = [1e300, -0, 3, null, -1e-300, 2 ** 53, 0, -7.5, 3, -Infinity, 2 ** 53 + 2, 1e-300, -7.25];
  same([...ranks(values)], [9, 4, 6, -1, 3, 7, 4, 1, 6, 0, 8, 5, 2]);
});

Deno.test("a second column orders what is equal in the first", () => {
  const keys = [{ rank: ranks([1, 1, 2]), descending: true }, { rank: ranks([5, 6, 7]), descending: true }];
  same(sorted(Uint32Array.of(0, 1, 2), keys), [2, 1, 0]);
});

Deno.test("headings turn around when clicked again; shift adds a second", () => {
  const first = nextSort([], "calls", true, false);
  is(printSort(first), "-calls");
  is(printSort(nextSort(first, "calls", true, false)), "calls");
  is(printSort(nextSort(first, "name", false, true)), "-calls,name");
  is(printSort(nextSort(nextSort(first, "name", false, true), "name", false, true)), "-calls,-name");
});

/** Random rows of a table with numbers, texts, and values that are missing. */
function randomTable(count: number, seed: number) {
  let state = seed;
  const random = (below: number) => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) % below;
  const column = (value: () => Value) => Array.from({ length: count }, () => random(9) ? value() : null);
  const calls = column(() => random(50) - 25.5), names = column(() => `aten::op ${random(300)}`);
  const texts = names.map((name) => String(name ?? ""));
  return { calls, names, texts, lower: texts, ranks: new ColumnRanks({ calls, names }) };
}

Deno.test("rows that are found in slices are those that a plain filter and a plain sort find", () => {
  const { calls, names, texts, ...table } = randomTable(12_000, 3);
  const byCalls = ([a, b]: Value[]) => a === b ? 0 : a === null ? 1 : b === null ? -1 : Number(b) - Number(a);
  const number = (row: number) => Number(/\d+/.exec(texts[row]!)?.[0] ?? Infinity);
  const has = (row: number, text: string) => texts[row]!.includes(text);
  for (const text of ["", "7 -27"]) {
    const work = findRows({ ...table, texts }, text, "-calls,names");
    let pauses = 0, step = work.next();
    for (; !step.done; step = work.next()) pauses++;
    is(pauses > 5, true);
    const expected = [...names.keys()].filter((row) => text === "" || (has(row, "7") && !has(row, "27")));
    same([...step.value.matches], expected);
    same(
      [...step.value.rows],
      expected.toSorted((a, b) => byCalls([calls[a]!, calls[b]!]) || number(a) - number(b) || a - b),
    );
  }
});

Deno.test("another order leaves the rows that match as they are, and another filter doesn't", () => {
  const table = randomTable(100, 5), find = (text: string, sort: string) => finish(findRows(table, text, sort));
  const { matches } = find("1", "calls");
  is(find("1", "-names").matches, matches);
  is(find("2", "-names").matches === matches, false);
  same([...find("1", "").rows], [...matches]);
});

Deno.test("what is dropped while it is ranked goes on at the next request", () => {
  const table = randomTable(9000, 7), first = findRows(table, "", "names");
  for (let i = 0; i < 9; i++) first.next();
  const second = finish(findRows(table, "", "names"));
  same(finish(first).rows, second.rows);
  same(second.rows, finish(findRows(randomTable(9000, 7), "", "names")).rows);
});

Deno.test("an address that names unknown columns is still good", () => {
  const { keys } = finish(findRows(randomTable(5, 1), "", "gone,-calls,lost,names,calls"));
  same(keys, [{ name: "calls", descending: true }, { name: "names", descending: false }]);
});
