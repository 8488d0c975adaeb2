import { deepStrictEqual as same } from "node:assert/strict";
import { unitOf } from "../src/views/overview/step_unit.ts";

Deno.test("an overview names the steps that it covers", () => {
  const textsOf = (steps: string[], complete: boolean[]) => {
    const { name, words, counted } = unitOf(steps, complete);
    return [name, words, counted];
  };
  same(textsOf(["5", "6", "7"], [true, true, false]), ["Average step", "the average step", "2 complete steps"]);
  same(textsOf(["5", "6"], [false, true]), ["Step 6", "step 6", ""]);
  same(textsOf(["5", "6"], [false, false]), ["Average step", "the average step", "2 steps, none complete"]);
  const { name, counted } = unitOf(["0", "1"], [true, true], ["decode", "decode"]);
  same([name, counted], ["Average iteration", "2 steady iterations"]);
  same(textsOf(["all"], [true]), ["Whole recording", "the recording", ""]);
});
