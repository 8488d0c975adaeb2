/** The base of a comparison: a second trace, stored in the address like the first. */

import { computed } from "@preact/signals";
import type { Address } from "./host.ts";
import { address, go, labelsOf, listing, openTrace, trace } from "./router.ts";

/** The base's place; null while nothing is compared. */
export const comparisonBase = computed(() => {
  const { base_run = "", base_worker = "", base_span = "" } = address.value;
  if (!base_run) return null;
  const workers = listing.value?.runs.find(({ name }) => name === base_run)?.workers ?? [];
  const file = workers.find(({ name }) => name === base_worker)?.spans.find(({ name }) => name === base_span);
  return { base_run, base_worker, base_span, version: file?.stamp ?? "" };
});

/** The base's labels, as in the menus. */
export const baseLabels = computed(() => {
  const { base_run: run = "", base_worker: worker = "", base_span: span = "" } = address.value;
  return labelsOf({ run, worker, span });
});

const asBase = ({ run = "", worker = "", span = "" }: Address): Address => ({
  base_run: run,
  base_worker: worker,
  base_span: span,
});

/** The initial base: the previous run, else another worker, else another span; null if there is none. */
function firstBase(): Address | null {
  const { run, worker, span } = trace.value;
  const runs = listing.value?.runs ?? [];
  const at = runs.findIndex(({ name }) => name === run);
  const neighbors = [runs[at - 1], runs[at + 1]].filter((other) => other !== undefined);
  const places = [...neighbors, ...(runs[at] ? [runs[at]] : [])].flatMap(({ name, workers }) =>
    workers.flatMap((one) => one.spans.map((recording) => ({ run: name, worker: one.name, span: recording.name })))
  );
  const isOther = (place: Address) => place.run !== run || place.worker !== worker || place.span !== span;
  const similarity = (place: Address) => Number(place.worker === worker) * 2 + Number(place.span === span);
  const others = places.filter(isOther);
  const run0 = others[0]?.run;
  const nearest = others.filter((place) => place.run === run0).sort((a, b) => similarity(b) - similarity(a))[0];
  return nearest ? asBase(nearest) : null;
}

export const hasOther = computed(() => firstBase() !== null);

/** Starts comparing, or changes the base. */
export function compareWith(place: Address | null = firstBase()) {
  if (place) go({ ...("run" in place ? asBase(place) : place), row: "", open: "" }, "push");
}

export const stopComparing = () => go({ ...asBase({}), noise: "", row: "", open: "" }, "push");

/** Swaps the shown trace and the base. */
export function swapComparison() {
  const { base_run = "", base_worker = "", base_span = "" } = address.value;
  openTrace({ run: base_run, worker: base_worker, span: base_span, ...asBase(trace.value) });
}
