/** Why a device was idle, in a sentence. */

import { quantity, type Value } from "../../format/numbers.ts";

const OCCUPIED: Record<string, string> = {
  "data loading": "waited for a batch of the data loader",
  "synchronising": "waited for the device",
  "runtime call": "was in calls to the runtime",
  "operator": "was inside operators",
  "annotation": "was in an annotated range, outside operators",
  "python": "ran Python, outside operators",
  "nothing recorded": "did nothing that was recorded",
};

export type Gap = Record<string, Value>;

const lasting = (value: Value | undefined) => quantity(typeof value === "number" ? value : null, "duration");

function lateWords({ host, host_ns, late_ns, dur_ns, after, op }: Gap): string {
  const what = `the host ${OCCUPIED[String(host)] ?? String(host)} for ${lasting(host_ns)} of it`;
  if (after === null) return `Host late: nothing more was launched; ${what}.`;
  const late = typeof late_ns === "number" && late_ns < Number(dur_ns)
    ? `the next work was launched ${lasting(late_ns)} after it began`
    : "nothing was queued";
  return `Host late: ${late}; ${what}.${op ? ` Then ${op} launched.` : ""}`;
}

/** The cause of a gap, what is known of it, and what the host did meanwhile. */
export function gapWords(gap: Gap): string {
  const queued = typeof gap.late_ns === "number" && gap.late_ns < 0
    ? `was queued ${lasting(-gap.late_ns)} before it`
    : "was queued";
  switch (gap.cause) {
    case "host late":
      return lateWords(gap);
    case "launch latency":
      return `Launch latency: the next work ${queued}, and the device took this long to begin it.`;
    case "dependency":
      return `Dependency: the next work ${queued}, and waited for another stream.`;
    default:
      return `The recording doesn't tell why: the next work ${queued}.`;
  }
}
