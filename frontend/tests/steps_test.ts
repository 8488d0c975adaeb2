import { strictEqual as is } from "node:assert/strict";
import { capitalized, stepInWords, uncapitalized } from "../src/format/steps.ts";

Deno.test("a sentence becomes a clause, and abbreviations stay", () => {
  is(uncapitalized("Host in Python"), "host in Python");
  is(uncapitalized("GPU events begin early"), "GPU events begin early");
  is(uncapitalized("A call"), "a call");
  is(uncapitalized(""), "");
  is(capitalized("host in Python"), "Host in Python");
});

Deno.test("a step has its article, and a recording without steps is the recording", () => {
  is(["step", "iteration", "recording"].map(stepInWords).join(", "), "a step, an iteration, the recording");
});
