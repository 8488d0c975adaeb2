/** From a rank's step to where it ran. */

import type { Table } from "../api.ts";
import { slicesOfRow } from "../row_slices.ts";
import { openTimeline } from "../state.ts";

/** Opens the timeline of the row's worker at the row's step, where the table tells both. */
export function OpenStep({ table: { data, view }, row }: { table: Table; row: number }) {
  const [step, total] = ["step", "total_ns"].map((name) => data[name]?.[row]);
  const slices = slicesOfRow(view, (name) => data[name]?.[row] ?? null);
  if (!slices?.worker || typeof total !== "number") return null;
  return (
    <button type="button" onClick={() => openTimeline(slices)}>
      Step {String(step)} of {slices.worker} in the timeline
    </button>
  );
}
