import { deepStrictEqual as same } from "node:assert/strict";
import type { Claim, Summary, Table } from "../src/api/types.ts";
import { inWordsOf } from "../src/app/advice_words.ts";

const claim = (about: Claim["about"], id: string, action: string, filter = "") =>
  ({
    ...{ about, id, filter, title: `${id}.`, evidence: `Of ${about}.`, action },
    ...{ saving_ns: 3, saving_frac: 0.3, saving_low_ns: 2, saving_high_ns: 4 },
  }) as Claim;

Deno.test("advice names the rank that the summary of the run names", () => {
  const verdict = claim("run", "communication", "Look at the links.");
  const also = [claim("recording", "communication", "Make rank1 faster.")];
  const advice = {
    view: "advice",
    data: {
      rule: ["communication", "copies"],
      filter: [null, null],
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
    filter: [null, null],
    title: ["communication.", "Copies."],
    evidence: ["Of recording.", "Of copies."],
    action: ["Make rank1 faster.", "Pin."],
    saving_ns: [3, 1],
    saving_frac: [0.3, 0.1],
    saving_low_ns: [2, 1],
    saving_high_ns: [4, 1],
  });
});

Deno.test("of several late ranks, each has the words of its own claim", () => {
  const verdict = claim("run", "straggler", "Compare its host.", "rank1");
  const also = [claim("run", "straggler", "Do it less often.", "rank2"), claim("recording", "straggler", "No.")];
  const table = {
    view: "run_advice",
    data: {
      ...{ rule: ["straggler", "straggler", "slow_link"], filter: ["rank2", "rank1", null] },
      ...{ title: ["2.", "1.", "Link."], evidence: ["2", "1", "link"], action: ["Check.", "Check.", "Look."] },
      ...{ saving_ns: [1, 2, 3], saving_frac: [0.1, 0.2, 0.3] },
    },
  } as unknown as Table;
  const { data } = inWordsOf({ verdict, also } as Summary, table);
  same(data.action, ["Do it less often.", "Compare its host.", "Look."]);
  same(data.saving_ns, [3, 3, 3]);
  same(Object.keys(data), Object.keys(table.data));
});
