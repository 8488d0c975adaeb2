/** What the server last told of the run's clocks, asked for while anybody wants to know. */

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { follow, type Query, type ViewAnswer } from "../api.ts";
import { type Clocks, clocksIn } from "./clocks.ts";

/** What the view said last. */
export const clocks = signal<Clocks>({});

/** Whether a whole picture has been drawn. Telling the clocks may take the server's processors for a while: it waits. */
export const isPictured = signal(false);

/** Asks the view for the clocks of what the question names, if anything, until it is told to stop. */
export function followClocks(question: ReadonlySignal<string>): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    const place = isPictured.value && question.value && JSON.parse(question.value) as Query;
    stop.abort();
    stop = new AbortController();
    clocks.value = {};
    if (!place) return;
    void follow<ViewAnswer>("view", { view: "clocks", ...place }, (answer) => {
      const told = clocksIn(answer);
      if (Object.keys(told).length) clocks.value = told;
    }, stop.signal);
  });
  return () => {
    stop.abort();
    end();
    clocks.value = {};
    isPictured.value = false;
  };
}
