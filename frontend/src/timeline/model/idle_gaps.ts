/** Describes why a device was idle. */

import { quantity, type Value } from "../../format/numbers.ts";
import type { Table } from "../../api/types.ts";
import { uncapitalized } from "../../format/steps.ts";
import { mostly } from "../../format/time_parts.ts";
import { wordsFor } from "../../table/columns.ts";
import { shortName } from "./text_fit.ts";

const HOST_ACTIVITY: Record<string, string> = {
  "data loading": "waited for a batch of the data loader",
  "synchronizing": "waited for the device",
  "runtime call": "was in calls to the runtime",
  "operator": "was inside operators",
  "annotation": "was in an annotated range, outside operators",
  "python": "ran Python, outside operators",
  "nothing recorded": "did nothing that was recorded",
};

export type Gap = Record<string, Value>;

/** A row of a table about gaps; values that are ids also in words, such as `cause in words`. */
export function rowOf({ columns, data }: Pick<Table, "columns" | "data">, row: number): Gap {
  const ids = columns.filter(({ words }) => words);
  return Object.fromEntries([
    ...Object.entries(data).map(([name, values]) => [name, values[row] ?? null]),
    ...ids.map((column) => [`${column.name} in words`, wordsFor(column, data[column.name]?.[row])]),
  ]);
}

const words = (gap: Gap, column: string) => String(gap[`${column} in words`]);

const durationText = (value: Value | undefined) => quantity(typeof value === "number" ? value : null, "duration");

function hostLateText({ host, host_ns, late_ns, dur_ns, after, op }: Gap): string {
  const what = `the host ${HOST_ACTIVITY[String(host)] ?? String(host)} for ${durationText(host_ns)} of it`;
  if (after === null) return `Host late: nothing more was launched; ${what}.`;
  const late = typeof late_ns === "number" && late_ns < Number(dur_ns)
    ? `the next work was launched ${durationText(late_ns)} after it began`
    : "nothing was queued";
  return `Host late: ${late}; ${what}.${op ? ` Then ${op} launched.` : ""}`;
}

/** The explanation of each cause, which follows its name. */
const EXPLANATIONS: Record<string, (queued: string) => string> = {
  "launch latency": (queued) => `the next work ${queued}, and the device took this long to begin it`,
  "dependency": (queued) => `the next work ${queued}, and waited for another stream or a CPU callback`,
  "blocked copy": (queued) => `the next work ${queued}, and the host was in a copy or a synchronizing call`,
  "graph launch": (queued) => `the next work ${queued}, and the call that launches its graph hadn't returned`,
  "not shown": () => "the device may have run other work",
  "unexplained": (queued) => `the next work ${queued}, and waited for nothing that was recorded`,
};

/** What the device was in a gap, as far as the trace shows. */
export const gapState = (gap: Gap): string =>
  gap.cause === "not shown" &&
    mostly(uncapitalized(words(gap, "cause")), Number(gap.cause_ns ?? gap.dur_ns), Number(gap.dur_ns)) || "idle";

/** What stands in a gap behind its length: the cause of most of it, and what launched what ended it. */
export function gapLabel(gap: Gap): string {
  const { cause, cause_ns, dur_ns, host, host_ns, op } = gap, state = gapState(gap);
  if (state !== "idle") return state;
  const whole = Number(dur_ns), spent = Number(cause_ns ?? whole);
  const isByHost = cause === "host late" && host && 2 * Number(host_ns) > whole;
  const why = mostly(
    uncapitalized(words(gap, isByHost ? "host" : "cause")),
    isByHost ? Math.min(spent, Number(host_ns)) : spent,
    whole,
  );
  return ["idle", why, op && `then ${shortName(String(op))}`].filter(Boolean).join(" · ");
}

/** Describes the cause of a gap and what the host did during it. */
export function gapText(gap: Gap): string {
  if (gap.cause === "host late") return hostLateText(gap);
  const queued = typeof gap.queued_before_ns === "number"
    ? `was queued ${durationText(gap.queued_before_ns)} before it`
    : "was queued";
  const explain = EXPLANATIONS[String(gap.cause)], cause = words(gap, "cause");
  const part = typeof gap.cause_ns === "number" && gap.cause_ns < Number(gap.dur_ns)
    ? ` for ${durationText(gap.cause_ns)} of it`
    : "";
  return `${cause}${part}${explain ? `: ${explain(queued)}` : ""}.`;
}
