/** The base of a comparison: a second trace, stored in the address like the first. */

import { computed } from "@preact/signals";
import type { Address } from "./host.ts";
import type { Run } from "../api/types.ts";
import { nameLikeness } from "../format/numbers.ts";
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
  /** What it has in common with the shown one, in words. */
  common: string;
}

interface Found extends Candidate {
  /** How much it has in common with the shown one. */
  likeness: number;
}

const SIBLING = 0.6; // of the name: runs of one experiment differ in little
const OWN_SPAN = 3, SIBLING_RUN = 2, OWN_RUN = 1; // added to a likeness, which is at most 1

const ALIKE_SIZE = 0.5; // of the larger file: both hold about as much

/** What two recordings have in common: their run, else their names; and their sizes. */
function commonText(isOwnRun: boolean, isSameWorker: boolean, name: number, size: number): string {
  const which = isOwnRun
    ? isSameWorker ? "same run and worker" : "same run"
    : name < SIBLING
    ? "another name"
    : `${Math.round(100 * name)} % of the name`;
  return `${which}, ${size < ALIKE_SIZE ? "another" : "about the same"} size`;
}

/** Every recording of a run, each with how much it has in common with the shown one. */
function recordingsOf({ name, label, workers }: Run, shown: Candidate): Found[] {
  const isOwnRun = name === shown.place.run, alike = nameLikeness(label, shown.run);
  const hasShownWorker = workers.some((worker) => worker.name === shown.place.worker);
  return workers.flatMap((worker) =>
    worker.spans.map((span, nth) => {
      const place = { run: name, worker: worker.name, span: span.name };
      const isSameWorker = hasShownWorker ? worker.name === shown.place.worker : worker === workers[0];
      const [small, large] = [span.bytes, shown.bytes].sort((a, b) => a - b);
      const size = large ? small! / large : 1;
      const kind = isOwnRun ? (isSameWorker ? OWN_SPAN : OWN_RUN) : alike >= SIBLING ? SIBLING_RUN : 0;
      const likeness = kind + (4 * alike + 2 * Number(isSameWorker) + size) / 7 - nth / worker.spans.length / 8;
      const common = commonText(isOwnRun, isSameWorker, alike, size);
      return { place, run: label, recording: `${worker.name} · ${span.label}`, bytes: span.bytes, common, likeness };
    })
  );
}

/**
 * The recordings to compare with: the worker's other spans, the likeliest recording of each run that is named almost
 * alike, the run's other workers, and the likeliest recording of each other run.
 */
export const candidates = computed((): Candidate[] => {
  const runs = listing.value?.runs ?? [], here = trace.value;
  const isShown = ({ place }: Candidate) =>
    place.run === here.run && place.worker === here.worker && place.span === here.span;
  const blank = { place: here, run: placeLabels.value.run, recording: "", bytes: 0, common: "" };
  const own = runs.find(({ name }) => name === here.run);
  const shown = (own && recordingsOf(own, blank).find(isShown)) ?? blank;
  const byLikeness = (found: Found[]) => found.sort((a, b) => b.likeness - a.likeness);
  const others = runs.filter((run) => run !== own).flatMap((run) => byLikeness(recordingsOf(run, shown)).slice(0, 1));
  const ofThisRun = own ? recordingsOf(own, shown).filter((one) => !isShown(one)) : [];
  return byLikeness([...ofThisRun, ...others]);
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
