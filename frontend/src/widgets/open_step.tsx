/** From a rank's step to where it ran. */

import type { Table } from "../api.ts";
import { openTimeline } from "../state.ts";

/** Opens the timeline of the row's worker at the row's step, where the table tells both. */
export function OpenStep({ table: { data }, row }: { table: Table; row: number }) {
  const [worker, step, start, total] = ["worker", "step", "start_ns", "total_ns"].map((name) => data[name]?.[row]);
  if (typeof worker !== "string" || typeof start !== "number" || typeof total !== "number") return null;
  const open = () => openTimeline({ find: null, range: { from: start, to: start + total }, worker });
  return <button type="button" onClick={open}>Step {String(step)} of {worker} in the timeline</button>;
}
