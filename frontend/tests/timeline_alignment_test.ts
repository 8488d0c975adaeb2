import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import {
  type Alignment,
  alignmentIn,
  alignmentText,
  commonSteps,
  shiftBetween,
  stepStart,
} from "../src/timeline/model/alignment.ts";

const step = (name: string, start_ns: number) => ({ name, start_ns, end_ns: start_ns + 10, is_complete: true });

Deno.test("alignments survive the address, and what can't be read is by clock", () => {
  const alignments: Alignment[] = [{ by: "step", step: "7" }, {
    by: "collective",
    find: { group: "0", nth: 3 },
    before: 2,
  }];
  for (const one of alignments) same(alignmentIn(alignmentText(one)), one);
  is(alignmentText({ by: "clock" }), "");
  for (const text of ["", "7", "null", "{}", '{"by":"step"}', '{"by":"collective","find":[],"before":0}']) {
    same(alignmentIn(text), { by: "clock" });
  }
});

Deno.test("each worker is shifted so that its moment lies on that of the main one", () => {
  const moments = { a: 1000, b: 700, c: null };
  is(shiftBetween(moments, "a", "a"), 0);
  is(shiftBetween(moments, "b", "a"), 300);
  for (const [worker, main] of [["c", "a"], ["a", "c"], ["d", "a"], ["a", "d"]] as const) {
    is(shiftBetween(moments, worker, main), null);
  }
});

Deno.test("steps to choose from are those that all workers have", () => {
  same(commonSteps([[step("7", 0), step("8", 10)], [step("8", 4), step("9", 14)]]), ["8"]);
  same(commonSteps([]), []);
  is(stepStart([step("7", 0), step("8", 10)], "8"), 10);
  is(stepStart([], "8"), null);
});
