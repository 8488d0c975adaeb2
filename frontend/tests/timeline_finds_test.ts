import { deepStrictEqual as same } from "node:assert/strict";
import { findOfCollective } from "../src/timeline/finds.ts";
import type { SliceFacts } from "../src/timeline/model.ts";

const facts = (collective: SliceFacts["collective"]) =>
  ({ name: "ncclDevKernel_AllReduce", category: "Communication", collective }) as SliceFacts;

Deno.test("a collective is found on other ranks by its number in its group", () => {
  same(findOfCollective(facts({ group: "0", nth: 7, name: "allreduce" })), {
    group: "0",
    nth: 7,
    category: "Communication",
  });
});

Deno.test("a collective that the file tells nothing of is found by its name", () => {
  const byName = { name: "ncclDevKernel_AllReduce", category: "Communication" };
  same(findOfCollective(facts(null)), byName);
  same(findOfCollective(facts({ group: "0", nth: null })), byName);
});
