import { deepStrictEqual as same, match, strictEqual as is } from "node:assert/strict";
import { ColumnRanks, filterRows, nextSort, parseFilter, parseSort, printSort, sortRows } from "../src/table/order.ts";
import type { Value } from "../src/format/numbers.ts";
import CASES from "./filters.json" with { type: "json" };

const ranks = (values: Value[]) => new ColumnRanks({ only: values }).of("only");

const { texts: TEXTS, matches: MATCHES } = CASES;
const rows = (filter: string) => [...filterRows(parseFilter(filter), TEXTS, TEXTS.map((text) => text.toLowerCase()))];

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
  same([...sortRows(all, [{ rank, descending: false }])], [2, 0, 3, 1]);
  same([...sortRows(all, [{ rank, descending: true }])], [0, 3, 2, 1]);
});

Deno.test("texts sort by the numbers in them", () => {
  const rank = ranks(["step 10", "step 9", null]);
  same([...sortRows(Uint32Array.of(0, 1, 2), [{ rank, descending: false }])], [1, 0, 2]);
});

Deno.test("texts sort by their words in any case, and by numbers of any length", () => {
  const texts = ["b", "A 10", "a 9", "a", "B 2", "a 123456789012", "a9b", "a10b", "a-b"];
  const order = sortRows(Uint32Array.from(texts.keys()), [{ rank: ranks(texts), descending: false }]);
  same([...order].map((row) => texts[row]), ["a", "a 9", "A 10", "a 123456789012", "a-b", "a9b", "a10b", "b", "B 2"]);
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
    same([...sortRows(rows, keys)], [...rows].sort(compare));
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
  same([...sortRows(Uint32Array.of(0, 1, 2), keys)], [2, 1, 0]);
});

Deno.test("headings turn around when clicked again; shift adds a second", () => {
  const first = nextSort([], "calls", true, false);
  is(printSort(first), "-calls");
  is(printSort(nextSort(first, "calls", true, false)), "calls");
  is(printSort(nextSort(first, "name", false, true)), "-calls,name");
  is(printSort(nextSort(nextSort(first, "name", false, true), "name", false, true)), "-calls,-name");
});

Deno.test("an address that names unknown columns is still good", () => {
  same(parseSort("-calls,gone", { calls: [], name: [] }), [{ name: "calls", descending: true }]);
});
