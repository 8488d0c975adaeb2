/** The base of a comparison: a second trace, stored in the address like the first. */

import { computed } from "@preact/signals";
import type { Address } from "./host.ts";
import type { Run } from "../api/types.ts";
import { sharedStart } from "../format/numbers.ts";
import { address, go, labelsOf, listedSpan, listing, openTrace, placeLabels, trace } from "./router.ts";

/** The base's place; null while nothing is compared. */
export const comparisonBase = computed(() => {
  const { base_run = "", base_worker = "", base_span = "", base_capture } = address.value;
  if (!base_run) return null;
  const version = listedSpan(base_run, base_worker, base_span)?.stamp ?? "";
  return { base_run, base_worker, base_span, ...(base_capture && { base_capture }), version };
});

/** The base's labels, as in the menus. */
export const baseLabels = computed(() => {
  const { base_run: run = "", base_worker: worker = "", base_span: span = "" } = address.value;
  return labelsOf({ run, worker, span });
});

const asBase = ({ run = "", worker = "", span = "", capture = "" }: Address): Address => ({
  base_run: run,
  base_worker: worker,
  base_span: span,
  base_capture: capture,
});

/** A recording to compare with. */
export interface Candidate {
  place: { run: string; worker: string; span: string };
  run: string;
  /** Which of the run's recordings it is. */
  recording: string;
  bytes: number;
}

interface Found extends Candidate {
  /** How much it has in common with the shown one. */
  likeness: number;
}

const reversed = (text: string) => [...text].reverse().join("");

/** The share of two names that is the same, from the start and from the end. */
function nameLikeness(a: string, b: string): number {
  const same = sharedStart(a, b) + sharedStart(reversed(a), reversed(b));
  return Math.min(1, same / Math.max(a.length, b.length, 1));
}

/** Every recording of a run, each with how much it has in common with the shown one. */
function recordingsOf({ name, label, workers }: Run, shown: Candidate): Found[] {
  const atNth = (worker: string) => workers.findIndex((one) => one.name === worker);
  return workers.flatMap((worker) =>
    worker.spans.map((span, nth) => {
      const place = { run: name, worker: worker.name, span: span.name };
      const isSameWorker = worker.name === shown.place.worker ||
        (atNth(shown.place.worker) < 0 && worker === workers[0]);
      const sizes = [span.bytes, shown.bytes].sort((a, b) => a - b);
      const likeness = 4 * Number(isSameWorker) + 2 * nameLikeness(label, shown.run) + sizes[0]! / (sizes[1] || 1) -
        nth / worker.spans.length;
      return { place, run: label, recording: `${worker.name} · ${span.label}`, bytes: span.bytes, likeness };
    })
  );
}

/** The recordings to compare with: of each other run the likeliest, then the others of this run, the likeliest first. */
export const candidates = computed((): Candidate[] => {
  const runs = listing.value?.runs ?? [], here = trace.value;
  const isShown = ({ place }: Candidate) =>
    place.run === here.run && place.worker === here.worker && place.span === here.span;
  const blank = { place: here, run: placeLabels.value.run, recording: "", bytes: 0 };
  const own = runs.find(({ name }) => name === here.run);
  const shown = (own && recordingsOf(own, blank).find(isShown)) ?? blank;
  const byLikeness = (found: Found[]) => found.sort((a, b) => b.likeness - a.likeness);
  const others = runs.filter((run) => run !== own).flatMap((run) => byLikeness(recordingsOf(run, shown)).slice(0, 1));
  const ofThisRun = own ? recordingsOf(own, shown).filter((one) => !isShown(one)) : [];
  return [...byLikeness(others), ...byLikeness(ofThisRun)];
});

/** Starts comparing, or changes the base. */
export const compareWith = (place: Address) =>
  go({ ...("run" in place ? asBase(place) : place), row: "", open: "" }, "push");

export const stopComparing = () => go({ ...asBase({}), noise: "", row: "", open: "" }, "push");

/** Swaps the shown trace and the base. */
export function swapComparison() {
  const { base_run = "", base_worker = "", base_span = "", base_capture = "" } = address.value;
  openTrace({ run: base_run, worker: base_worker, span: base_span, capture: base_capture, ...asBase(trace.value) });
}
