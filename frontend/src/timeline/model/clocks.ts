/**
 * How far workers' clocks are apart, and who says so. What the recorder measured comes with each worker's trace; where
 * it measured nothing, the view `clocks` infers it from the collectives that the ranks share.
 */

import type { ViewAnswer } from "../../api/types.ts";
import type { Meta } from "../../api/timeline_types.ts";

/** What is known of a worker's clock: ns that it is ahead of the run's first, by how much that may be wrong, and why. */
export interface Clock {
  ahead_ns: number;
  error_ns: number | null;
  told_by: string;
}
export type Clocks = Record<string, Clock>;

/** Of larger runs the clocks aren't asked for: that would read every recording of which there is no summary. */
export const MOST_WORKERS = 64;

/** The clocks in an answer of the view; none if it says none. */
export function clocksIn(answer: ViewAnswer): Clocks {
  if (answer.state !== "ready") return {};
  const { worker, ahead_ns, error_ns, told_by } = answer.data;
  return Object.fromEntries(
    (worker ?? []).map((name, i) => [String(name), {
      ahead_ns: Number(ahead_ns![i]),
      error_ns: error_ns![i] as number | null,
      told_by: String(told_by![i]),
    }]),
  );
}

/** What is to be added to a worker's times for those of the main one: by both clocks if they were compared, else as measured. */
export function clockShift(meta: Meta, own: Meta, clock: Clock | undefined, main: Clock | undefined): number {
  const measured = Number(BigInt(meta.origin_ns) - BigInt(own.origin_ns));
  if (!clock || !main) return measured;
  const apart = (meta.clock_offset_ns ?? 0) - (own.clock_offset_ns ?? 0);
  return measured + apart - (clock.ahead_ns - main.ahead_ns);
}

/** What is said of a worker's clock; nothing of that of the main one. */
export function clockText(meta: Meta, clock: Clock | undefined): { text: string; error_ns: number | null } | null {
  if (meta.clock_error_ns !== null) {
    return meta.clock_error_ns ? { text: "clock measured to", error_ns: meta.clock_error_ns } : null;
  }
  if (!clock) return null;
  if (clock.told_by === "collectives") return { text: "clock told by collectives to", error_ns: clock.error_ns };
  return clock.told_by === "wall clock" ? { text: "by its wall clock, which nobody compared", error_ns: null } : null;
}
