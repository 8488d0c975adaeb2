import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { folderAndName, runFilter } from "../src/format/run_filter.ts";

Deno.test("the filter of runs is a regular expression in any case", () => {
  const runs = ["job/lr_0.1", "job/lr_0.01", "Other/lr_0.1"];
  const hits = (text: string) => runs.filter((run) => runFilter(text)(run));
  same(hits(""), runs);
  same(hits("^job/"), ["job/lr_0.1", "job/lr_0.01"]);
  same(hits("other|0\\.01$"), ["job/lr_0.01", "Other/lr_0.1"]);
  same(hits("0.1$ JOB"), ["job/lr_0.1"]);
  is(runFilter("^run$ rank1")("run", "rank1 · 5"), true);
});

Deno.test("what is no regular expression counts as text", () => {
  is(runFilter("run(1")("my_run(1)"), true);
  is(runFilter("run(1")("run1"), false);
});

Deno.test("a run's folder is what is before the last slash", () => {
  same(folderAndName("a/b/run"), ["a/b", "run"]);
  same(folderAndName("run"), ["", "run"]);
  same(folderAndName("s3://bucket/run"), ["s3://bucket", "run"]);
});
