import { deepStrictEqual as same } from "node:assert/strict";
import { type Job, jobText, outcomeOf, type RankStatus } from "../src/shell/capture_status.ts";
import type { Run } from "../src/api/types.ts";

const rank = (changes: Partial<RankStatus> = {}): RankStatus => ({
  rank: 0,
  world_size: 2,
  state: "running",
  completed: 40,
  step_s: 0.25,
  is_recording: false,
  records: true,
  age_s: 1,
  news: [],
  ...changes,
});
const job = (ranks: RankStatus[], unavailable_reason = ""): Job => ({ run: "job", unavailable_reason, ranks });
const plan = (id: string, first = 50, steps = 3) => ({ first, request: { id, steps, ranks: null } });
const planned = (changes: Partial<RankStatus> = {}) => rank({ news: [["plan", plan("mine"), 20]], ...changes });
const listed = (...workers: string[]): Run => ({
  name: "job",
  label: "job",
  workers: workers.map((name) => ({
    name,
    spans: [{ name: "53", label: "53", file: "", bytes: 1, stamp: "" }],
    newest: "53",
  })),
  notes: [],
});
const phase = (job: Job, run?: Run) => outcomeOf(job, "mine", 10, run).phase;

Deno.test("a request is followed from asking to the file", () => {
  same(phase(job([rank(), rank()])), "requested");
  same(outcomeOf(job([planned()]), "mine", 10, undefined), {
    phase: "planned",
    text: "Steps 50 to 52 will be recorded; 40 are complete.",
  });
  same(phase(job([planned({ is_recording: true, completed: 51 })])), "recording");
  same(phase(job([planned({ completed: 53 })])), "recording");
  same(outcomeOf(job([planned(), planned({ rank: 1 })]), "mine", 10, listed("rank0")), {
    phase: "saved",
    text: "Saved by 1 of 2 ranks so far.",
    span: "53",
  });
  same(outcomeOf(job([planned()]), "mine", 10, listed("rank0")).text, "Saved.");
});

Deno.test("a failed request is explained", () => {
  same(phase(job([rank()], "it has ended (end)")), "failed");
  same(phase(job([planned()], "it has ended (end)")), "failed");
  same(phase(job([rank({ news: [["refused", "no JSON", 20]] })])), "failed");
  same(phase(job([rank({ news: [["refused", "an earlier one", 10]] })])), "requested");
  same(phase(job([rank({ news: [["plan", plan("other"), 20]] })])), "failed");
  same(phase(job([planned({ news: [["plan", plan("mine"), 20], ["missed", "mine", 30]] })])), "failed");
});

Deno.test("a job is described by its ranks", () => {
  same(jobText(job([rank(), rank({ rank: 1 })])), "2 ranks, 40 steps complete, 250 ms a step.");
  same(jobText(job([rank({ completed: null, step_s: null })])), "1 of 2 ranks reported, no step complete yet.");
  same(jobText(job([], "it says nothing")), "It accepts no requests: it says nothing.");
});
