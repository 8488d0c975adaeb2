/** What the server last told of the run's clocks, asked for while anybody wants to know. */

import { batch, effect, type ReadonlySignal, signal } from "@preact/signals";
import { follow, type Query, type ViewAnswer } from "../api.ts";
import { type Clocks, clocksIn } from "./clocks.ts";

/** What the view said last. */
export const clocks = signal<Clocks>({});

/** Whether a whole picture has been drawn. Telling the clocks may take the server's processors for a while: it waits. */
export const isPictured = signal(false);

/** Whether the clocks are still being told: workers may move then. */
export const isTelling = signal(false);

/** Asks the view for the clocks of what the question names, if anything, until it is told to stop. */
export function followClocks(question: ReadonlySignal<string>): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    const place = isPictured.value && question.value && JSON.parse(question.value) as Query;
    stop.abort();
    stop = new AbortController();
    clocks.value = {};
    isTelling.value = question.value !== "";
    if (!place) return;
    void follow<ViewAnswer>("view", { view: "clocks", ...place }, (answer) => {
      const told = clocksIn(answer);
      batch(() => {
        if (Object.keys(told).length) clocks.value = told;
        isTelling.value = answer.state === "loading";
      });
    }, stop.signal);
  });
  return () => {
    stop.abort();
    end();
    clocks.value = {};
    isTelling.value = isPictured.value = false;
  };
}
