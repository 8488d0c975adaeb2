import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { HitsAnswer } from "../src/api/timeline_types.ts";
import {
  failures,
  type Hit,
  nearest,
  positionOf,
  queryText,
  resultCount,
  resultNames,
} from "../src/timeline/search/search_results.ts";

const BRIEF = { slice: 0, name: "mm", category: "Operator", track: 0, lane: 0, start_ns: 0, dur_ns: 1 };
const hits = (names: [string, number][]): HitsAnswer => ({
  state: "ready",
  count: names.reduce((sum, [, count]) => sum + count, 0),
  names,
  histogram: [],
  slice: null,
  place: null,
});
const hit = (source: string, at: number, place: number): Hit => ({ source, at, place, brief: BRIEF });

Deno.test("what several traces found is counted together", () => {
  const answers: Record<string, HitsAnswer> = {
    a: hits([["mm", 3], ["bmm", 1]]),
    b: hits([["bmm", 5]]),
    c: { state: "failed", code: "bad_parameter", message: "No pattern." },
    d: { state: "loading", progress: null },
  };
  is(resultCount(answers), 9);
  same(resultNames(answers), [["bmm", 6], ["mm", 3]]);
  same(failures(answers), [["c", "No pattern."]]);
});

Deno.test("the next hit is the first of all traces, the previous one the last", () => {
  const [a, b] = [hit("a", 70, 2), hit("b", 50, 9)];
  const offers = [{ hit: a, count: 4 }, { hit: b, count: 10 }, { hit: null, count: 6 }];
  is(nearest(offers, "next"), b);
  is(nearest(offers, "previous"), a);
  is(nearest([{ hit: null, count: 6 }], "next"), null);
});

Deno.test("a hit's standing counts the hits of all traces before it", () => {
  const [a, b] = [hit("a", 70, 2), hit("b", 50, 9)];
  const offers = [{ hit: a, count: 4 }, { hit: b, count: 10 }, { hit: null, count: 6 }];
  is(positionOf(offers, "next", b), 2 + 9 + 6 + 1); // all six of the third trace lie before
  is(positionOf(offers, "previous", a), 2 + 10 + 0 + 1); // b's up to this one; none of the third
});

Deno.test("what is looked for is said in words", () => {
  const title = (view: string) => view === "operators" ? "Operators" : view;
  is(queryText({ text: "mm -bmm" }, title), "“mm -bmm”");
  is(queryText({ name: "aten::mm", input_shapes: "[2]", op: null }, title), "aten::mm, input shapes [2], op not known");
  is(queryText({ view: "operators", name: "aten::mm" }, title), "the row of Operators: aten::mm");
});
