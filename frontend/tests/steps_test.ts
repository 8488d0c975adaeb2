import { strictEqual as is } from "node:assert/strict";
import { capitalized, uncapitalized } from "../src/format/steps.ts";

Deno.test("a sentence becomes a clause, and abbreviations stay", () => {
  is(uncapitalized("Host in Python"), "host in Python");
  is(uncapitalized("GPU events begin early"), "GPU events begin early");
  is(uncapitalized("A call"), "a call");
  is(uncapitalized(""), "");
  is(capitalized("host in Python"), "Host in Python");
});
