/** The server's clocks of the run's workers. */

import { computed, signal } from "@preact/signals";
import type { ViewAnswer } from "../../api/types.ts";
import { resource } from "../../app/resource.ts";
import { address } from "../../app/router.ts";
import { type Clocks, clocksIn, MOST_WORKERS } from "../model/clocks.ts";
import { listedWorkers, main, metaOf, shownWorkers, unready } from "./traces.ts";

/** Whether a whole picture has been drawn. Comparing the clocks may take the server's processors for a while: it waits. */
export const isPictured = signal(false);

/** Whether all shown workers are there, and one's clock wasn't measured. */
const isUnmeasured = computed(() => {
  const isLoading = unready.value.some(([, { state }]) => state === "loading");
  if (isLoading || shownWorkers.value.length < 2) return false;
  return shownWorkers.value.map(metaOf).some((meta) => meta.state === "ready" && meta.clock_error_ns === null);
});

/** The run whose clocks the user wants compared although it is large. */
const requested = signal("");
export const compareClocks = () => (requested.value = address.peek().run ?? "");

const isWanted = computed(() => {
  const { run = "", critical } = address.value;
  return listedWorkers.value.length <= MOST_WORKERS || requested.value === run || critical === "ranks";
});

/** Whether the clocks of a large run are compared only on request. */
export const isOnRequest = computed(() => isUnmeasured.value && !isWanted.value);

const view = resource<ViewAnswer>(() => {
  if (!isUnmeasured.value || !isWanted.value || !isPictured.value) return null;
  const { run = "", span = "" } = address.value;
  return { route: "view", query: { view: "clocks", run, worker: main.value, span } };
});

/** Each worker's clock, as far as the server has compared it. */
export const clocks = computed((): Clocks => view.answer.value ? clocksIn(view.answer.value) : {});

/** Whether the clocks are still being compared: workers may move then. */
export const isComparing = computed(() =>
  isUnmeasured.value && isWanted.value && (view.answer.value === null || view.answer.value.state === "loading")
);

/** Why the clocks can't be compared; empty without a failure. */
export const comparisonProblem = computed(() => view.answer.value?.state === "failed" ? view.answer.value.message : "");

export function startClocks(): () => void {
  const end = view.start();
  return () => {
    end();
    isPictured.value = false;
  };
}
