import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { addKernelLabels } from "../src/format/readable_names.ts";
import type { SearchAnswer } from "../src/api/timeline_types.ts";
import {
  failures,
  nearest,
  positionOf,
  queryText,
  resultCount,
  resultNames,
  type SearchResult,
} from "../src/timeline/search/search_results.ts";

const SUMMARY = { slice: 0, name: "mm", category: "Operator", track: 0, lane: 0, start_ns: 0, dur_ns: 1 };
const results = (names: [string, number, number][]): SearchAnswer => ({
  state: "ready",
  count: names.reduce((sum, [, count]) => sum + count, 0),
  names,
  histogram: [],
  slice: null,
  place: null,
});
const result = (source: string, at: number, place: number): SearchResult => ({ source, at, place, summary: SUMMARY });

Deno.test("the results of several traces are added up", () => {
  const answers: Record<string, SearchAnswer> = {
    a: results([["mm", 3, 30], ["bmm", 1, 5]]),
    b: results([["bmm", 5, 20]]),
    c: { state: "failed", code: "bad_parameter", message: "No pattern." },
    d: { state: "loading", progress: null },
  };
  is(resultCount(answers), 9);
  same(resultNames(answers), [["bmm", 6, 25], ["mm", 3, 30]]);
  same(failures(answers), [["c", "No pattern."]]);
});

Deno.test("the next hit is the first of all traces, the previous one the last", () => {
  const [a, b] = [result("a", 70, 2), result("b", 50, 9)];
  const candidates = [{ result: a, count: 4 }, { result: b, count: 10 }, { result: null, count: 6 }];
  is(nearest(candidates, "next"), b);
  is(nearest(candidates, "previous"), a);
  is(nearest([{ result: null, count: 6 }], "next"), null);
});

Deno.test("a hit's standing counts the hits of all traces before it", () => {
  const [a, b] = [result("a", 70, 2), result("b", 50, 9)];
  const candidates = [{ result: a, count: 4 }, { result: b, count: 10 }, { result: null, count: 6 }];
  is(positionOf(candidates, "next", b), 2 + 9 + 6 + 1); // all six of the third trace lie before
  is(positionOf(candidates, "previous", a), 2 + 10 + 0 + 1); // b's up to this one; none of the third
});

Deno.test("a query has a label", () => {
  const title = (view: string) => view === "operators" ? "Operators" : view;
  is(queryText({ text: "mm -bmm" }, title), "“mm -bmm”");
  is(queryText({ name: "aten::mm", input_shapes: "[2]", op: null }, title), "aten::mm, input shapes [2], op missing");
  is(queryText({ view: "operators", name: "aten::mm" }, title), "the row of Operators: aten::mm");
  addKernelLabels({ "void at::native::k<float>(int)": "k fp32" });
  is(queryText({ view: "kernels", name: "void at::native::k<float>(int)" }, title), "the row of kernels: k fp32");
});
