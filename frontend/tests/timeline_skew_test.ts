import { strictEqual as is } from "node:assert/strict";
import { skewOf } from "../src/timeline/skew.ts";

Deno.test("the skew of a collective is from its first begin to its last, on the common clock", () => {
  const brief = (start_ns: number) => ({ slice: 0, name: "", category: "", track: 0, lane: 0, start_ns, dur_ns: 1 });
  const list = [{ source: "a", brief: brief(100) }, { source: "b", brief: brief(50) }, {
    source: "c",
    brief: brief(20),
  }];
  const shifts: Record<string, number> = { a: 0, b: 70, c: 100 };
  is(skewOf(list, (source) => shifts[source]!), 20);
});
