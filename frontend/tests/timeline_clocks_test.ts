import { deepStrictEqual as assertEquals } from "node:assert/strict";
import type { ViewAnswer } from "../src/api/types.ts";
import { clockShift, clocksIn, clockText } from "../src/timeline/model/clocks.ts";
import type { Meta } from "../src/api/timeline_types.ts";

const meta = (origin_ns: string, offset: number | null = null, error: number | null = null) =>
  ({ origin_ns, clock_offset_ns: offset, clock_error_ns: error }) as Meta;
const clock = (offset_ns: number, source = "collectives") => ({ offset_ns, error_ns: 2000, source });

Deno.test("a worker is where its clock puts it while the offset is unknown", () => {
  assertEquals(clockShift(meta("1700000000000005000"), meta("1700000000000000000"), undefined, undefined), 5000);
});

Deno.test("the clock offsets inferred from collectives are subtracted", () => {
  const own = meta("1700000000000000000"), other = meta("1700000000000005000");
  assertEquals(clockShift(other, own, clock(3000), clock(1000)), 3000);
});

Deno.test("a measured clock, whose origin is corrected already, is corrected once", () => {
  const own = meta("1700000000000000000", 0, 0), other = meta("1700000000000005000", 700, 40);
  assertEquals(clockShift(other, own, clock(700, "measurement"), clock(0, "measurement")), 5000);
  assertEquals(clockShift(other, own, undefined, undefined), 5000);
});

Deno.test("the source of a clock offset is named", () => {
  assertEquals(clockText(meta("0", 7, 40), undefined, undefined), { text: "clock measured to", error_ns: 40 });
  assertEquals(clockText(meta("0", 0, 0), undefined, undefined), null);
  assertEquals(clockText(meta("0"), undefined, clock(1)), {
    text: "clock inferred from collectives to",
    error_ns: 2000,
  });
  assertEquals(clockText(meta("0"), undefined, clock(1, "wall clock"))?.error_ns, null);
  assertEquals(clockText(meta("0"), undefined, clock(0, "reference")), null);
});

Deno.test("without a common clock both begin at once, and that is said", () => {
  const at = (origin_ns: string, begin: number) => ({ ...meta(origin_ns), window: [begin, begin + 10] }) as Meta;
  const own = at("1700000000000000000", 40), other = at("80142366447065", 3);
  assertEquals(clockShift(other, own, clock(9, "wall clock"), clock(0, "wall clock")), 37);
  assertEquals(clockText(other, own, undefined)?.text, "no common clock: drawn as if both had begun at once");
  assertEquals(clockShift(at("7000", 0), at("2000", 0), undefined, undefined), 5000);
});

Deno.test("clocks are read from the view's columns", () => {
  const data = { worker: ["a"], offset_ns: [5], error_ns: [null], source: ["wall clock"] };
  const answer = { state: "ready", data } as unknown as ViewAnswer;
  assertEquals(clocksIn(answer), { a: { offset_ns: 5, error_ns: null, source: "wall clock" } });
  assertEquals(clocksIn({ state: "missing", hint: "" }), {});
});
