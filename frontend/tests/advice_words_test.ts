import { deepStrictEqual as same } from "node:assert/strict";
import type { Claim, Summary, Table } from "../src/api/types.ts";
import { inWordsOf } from "../src/app/advice_words.ts";

const claim = (about: Claim["about"], id: string, action: string) =>
  ({
    ...{ about, id, title: `${id}.`, evidence: `Of ${about}.`, action },
    ...{ saving_ns: 3, saving_frac: 0.3, saving_low_ns: 2, saving_high_ns: 4 },
  }) as Claim;

Deno.test("advice names the rank that the summary of the run names", () => {
  const verdict = claim("run", "communication", "Look at the links.");
  const also = [claim("recording", "communication", "Make rank1 faster.")];
  const advice = {
    data: {
      rule: ["communication", "copies"],
      title: ["Old.", "Copies."],
      evidence: ["Of one.", "Of copies."],
      action: ["Find the rank.", "Pin."],
      saving_ns: [7, 1],
      saving_frac: [0.7, 0.1],
      saving_low_ns: [6, 1],
      saving_high_ns: [9, 1],
    },
  } as unknown as Table;
  same(inWordsOf({ verdict, also } as Summary, advice).data, {
    rule: ["communication", "copies"],
    title: ["communication.", "Copies."],
    evidence: ["Of recording.", "Of copies."],
    action: ["Make rank1 faster.", "Pin."],
    saving_ns: [3, 1],
    saving_frac: [0.3, 0.1],
    saving_low_ns: [2, 1],
    saving_high_ns: [4, 1],
  });
});
