import { strictEqual as is } from "node:assert/strict";
import { type Gap, gapLabel, gapState, gapText, rowOf } from "../src/timeline/model/idle_gaps.ts";

const CAUSES = {
  "host late": "Host late",
  dependency: "Waiting for another stream",
  "blocked copy": "Blocked in a copy or sync",
  "not shown": "Launch or work not recorded",
  "launch latency": "Launch latency",
  unexplained: "Unexplained",
};
const columns = [["cause", CAUSES], ["host", { operator: "Host in operators" }]] as const;

/** A row of the view of gaps, whose columns say what people call a cause and what the host did. */
const gapOf = (gap: Gap) =>
  rowOf({
    columns: columns.map(([name, words]) => ({ name, kind: "text", doc: "", words })),
    data: Object.fromEntries(Object.entries(gap).map(([name, value]) => [name, [value]])),
  }, 0);
const text = (gap: Gap) => gapText(gapOf(gap)), state = (gap: Gap) => gapState(gapOf(gap));

const GAP = { dur_ns: 69_000_000, host: "data loading", host_ns: 68_000_000, after: "Memcpy HtoD", op: "aten::copy_" };

Deno.test("a gap of a late host has the delay, what the host did, and what launched then", () => {
  is(
    text({ ...GAP, cause: "host late", late_ns: 68_900_000 }),
    "Host late: the next work was launched 68.9 ms after it began; the host waited for a batch of the data loader for " +
      "68 ms of it. Then aten::copy_ launched.",
  );
});

Deno.test("a gap after which nothing ran claims no launch", () => {
  is(
    text({ ...GAP, cause: "host late", host: "python", late_ns: null, after: null, op: null }),
    "Host late: nothing more was launched; the host ran Python, outside operators for 68 ms of it.",
  );
});

Deno.test("a gap whose next work was queued has the time, if it is recorded", () => {
  const words = (cause: string, queued_before_ns: number | null) => text({ ...GAP, cause, queued_before_ns });
  is(
    words("dependency", 2000),
    "Waiting for another stream: the next work was queued 2 µs before it, and waited for another stream or a CPU callback.",
  );
  is(
    words("launch latency", null),
    "Launch latency: the next work was queued, and the device took this long to begin it.",
  );
  is(words("unexplained", null), "Unexplained: the next work was queued, and waited for nothing that was recorded.");
});

Deno.test("a gap with several causes has the time of the largest", () => {
  is(
    text({ ...GAP, cause: "blocked copy", cause_ns: 60_000_000, late_ns: null }),
    "Blocked in a copy or sync for 60 ms of it: the next work was queued, and the host was in a copy or a synchronizing call.",
  );
  is(text({ ...GAP, cause: "not shown" }), "Launch or work not recorded: the device may have run other work.");
});

Deno.test("the label of a gap says how much of it its cause is", () => {
  const label = (gap: Partial<Record<string, string | number | null>>) =>
    gapLabel(gapOf({ dur_ns: 100, op: null, ...gap }));
  const late = { cause: "host late", host: "operator", op: "aten::copy_" };
  is(label({ ...late, cause_ns: 100, host_ns: 99 }), "idle · host in operators · then copy_");
  is(label({ ...late, cause_ns: 100, host_ns: 70 }), "idle · mostly host in operators · then copy_");
  is(label({ ...late, cause_ns: 100, host_ns: 40 }), "idle · host late · then copy_");
  is(label({ ...late, cause_ns: 50, host_ns: 40 }), "idle · then copy_");
  is(label({ cause: "dependency", cause_ns: 60 }), "idle · mostly waiting for another stream");
});

Deno.test("where the trace may lack work, no device is called idle", () => {
  is(
    gapLabel(gapOf({ dur_ns: 100, cause: "not shown", cause_ns: 100, op: "aten::copy_" })),
    "launch or work not recorded",
  );
  is(state({ dur_ns: 100, cause: "not shown", cause_ns: 80 }), "mostly launch or work not recorded");
  is(state({ dur_ns: 100, cause: "not shown", cause_ns: 40 }), "idle");
  is(state({ dur_ns: 100, cause: "dependency", cause_ns: 100 }), "idle");
});
