import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import type { SliceFacts } from "../src/api/timeline_types.ts";
import { findOfCollective, startSpread } from "../src/timeline/model/collective_peers.ts";

Deno.test("the skew of a collective is from its first begin to its last, on the common clock", () => {
  const summary = (start_ns: number) => ({ slice: 0, name: "", category: "", track: 0, lane: 0, start_ns, dur_ns: 1 });
  const list = [{ source: "a", summary: summary(100) }, { source: "b", summary: summary(50) }, {
    source: "c",
    summary: summary(20),
  }];
  const shifts: Record<string, number> = { a: 0, b: 70, c: 100 };
  is(startSpread(list, (source) => shifts[source]!), 20);
});

const facts = (collective: SliceFacts["collective"]) =>
  ({ name: "ncclDevKernel_AllReduce", category: "Communication", collective }) as SliceFacts;

Deno.test("a collective is found on other ranks by its number in its group", () => {
  same(findOfCollective(facts({ group: "0", nth: 7, name: "allreduce" })), {
    group: "0",
    nth: 7,
    category: "Communication",
  });
});

Deno.test("a collective without metadata is found by its name", () => {
  const byName = { name: "ncclDevKernel_AllReduce", category: "Communication" };
  same(findOfCollective(facts(null)), byName);
  same(findOfCollective(facts({ group: "0", nth: null })), byName);
});
