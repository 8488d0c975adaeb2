import { deepStrictEqual as same, match, strictEqual as is } from "node:assert/strict";
import { filterRows, nextSort, parseFilter, parseSort, printSort, ranks, sortRows } from "../src/table/order.ts";
import CASES from "./filters.json" with { type: "json" };

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
