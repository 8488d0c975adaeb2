/**
 * Clock offsets between workers, and their source. A recorder's measurement comes with each worker's trace; without one,
 * the view `clocks` infers the offset from the collectives that the ranks share.
 */

import type { ViewAnswer } from "../../api/types.ts";
import type { Meta } from "../../api/timeline_types.ts";

/** A worker's clock: its offset to the run's first worker, the error bound, and the source. */
export interface Clock {
  offset_ns: number;
  error_ns: number | null;
  source: string;
}
export type Clocks = Record<string, Clock>;

/** In larger runs, clocks are compared on request, or with the path across ranks: it reads every recording. */
export const MOST_WORKERS = 64;

/** The clocks in an answer of the view `clocks`. */
export function clocksIn(answer: ViewAnswer): Clocks {
  if (answer.state !== "ready") return {};
  const { worker, offset_ns, error_ns, source } = answer.data;
  return Object.fromEntries(
    (worker ?? []).map((name, i) => [String(name), {
      offset_ns: Number(offset_ns![i]),
      error_ns: error_ns![i] as number | null,
      source: String(source![i]),
    }]),
  );
}

/** 2000 in Unix time: a recording that begins before has another clock, such as the time since the machine's start. */
const EARLIEST_NS = 946_684_800_000_000_000n;

/** Whether only one of two workers says when it was recorded: then nothing relates their times. */
const haveNoCommonClock = (meta: Meta, own: Meta): boolean =>
  (BigInt(meta.origin_ns) < EARLIEST_NS) !== (BigInt(own.origin_ns) < EARLIEST_NS);

/**
 * The shift from a worker's times to the main one's: from both clocks if they were compared, else as measured; without
 * a common clock both begin at once.
 */
export function clockShift(meta: Meta, own: Meta, clock: Clock | undefined, main: Clock | undefined): number {
  if (haveNoCommonClock(meta, own)) return own.window[0] - meta.window[0];
  const measured = Number(BigInt(meta.origin_ns) - BigInt(own.origin_ns));
  if (!clock || !main) return measured;
  const apart = (meta.clock_offset_ns ?? 0) - (own.clock_offset_ns ?? 0);
  return measured + apart - (clock.offset_ns - main.offset_ns);
}

/** The note on a worker's clock; null for the reference. */
export function clockText(
  meta: Meta,
  own: Meta | undefined,
  clock: Clock | undefined,
): { text: string; error_ns: number | null } | null {
  if (own && haveNoCommonClock(meta, own)) {
    return { text: "no common clock: drawn as if both had begun at once", error_ns: null };
  }
  if (meta.clock_error_ns !== null) {
    return meta.clock_error_ns ? { text: "clock measured to", error_ns: meta.clock_error_ns } : null;
  }
  if (!clock) return null;
  if (clock.source === "collectives") return { text: "clock inferred from collectives to", error_ns: clock.error_ns };
  return clock.source === "wall clock" ? { text: "by its wall clock, not compared", error_ns: null } : null;
}
