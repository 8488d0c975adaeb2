/** From a rank's step to where it ran. */

import type { Table } from "../api.ts";
import { listing, openTimeline, openTrace, placeIn, trace } from "../state.ts";

/** The recording of another worker that is of the same span as the shown one, or in the same place among its own. */
function placeOf(worker: string) {
  const { run, worker: shown, span } = trace.peek();
  const workers = listing.peek()?.runs.find(({ name }) => name === run)?.workers ?? [];
  const spans = (name: string) => workers.find((one) => one.name === name)?.spans ?? [];
  const nth = spans(shown).findIndex(({ name }) => name === span);
  const same = spans(worker).find(({ name }) => name === span) ?? spans(worker)[nth];
  return placeIn(run, worker, same?.name);
}

/** Opens the timeline of the row's worker at the row's step, where the table tells both. */
export function OpenStep({ table: { data }, row }: { table: Table; row: number }) {
  const [worker, step, start, total] = ["worker", "step", "start_ns", "total_ns"].map((name) => data[name]?.[row]);
  if (typeof worker !== "string" || typeof start !== "number" || typeof total !== "number") return null;
  const open = () => {
    openTrace(placeOf(worker));
    openTimeline({ find: null, range: { from: start, to: start + total } });
  };
  return <button type="button" onClick={open}>Step {String(step)} of {worker} in the timeline</button>;
}
