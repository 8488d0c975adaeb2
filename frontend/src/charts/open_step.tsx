/** From a rank's step to where it ran. */

import { h } from "preact";
import type { Table } from "../api/types.ts";
import { openTimeline, slicesIn } from "../app/router.ts";

/** Opens the timeline of the row's worker at the row's step, where the table has both. */
export function OpenStep({ table: { data, view }, row }: { table: Table; row: number }) {
  const [step, total] = ["step", "total_ns"].map((name) => data[name]?.[row]);
  const slices = slicesIn(view, (name) => data[name]?.[row] ?? null);
  if (!slices?.worker || typeof total !== "number") return null;
  return (
    <button type="button" onClick={() => openTimeline(slices)}>
      Step {String(step)} of {slices.worker} in the timeline
    </button>
  );
}
