/** What is done by keys that need an answer first: one after the other, each from where the one before led. */

import { effect } from "@preact/signals";
import { detail } from "../state/selection.ts";

let waiting = 0;
let last: Promise<void> = Promise.resolve();

/** Does it after all that was asked for before; what a held key repeats is left out while there is something to do. */
export function enqueue(act: () => Promise<void> | void, isRepeat = false) {
  if (isRepeat && waiting) return;
  waiting++;
  last = last.then(act).catch(reportError).finally(() => waiting--);
}

/** Waits until the facts of the selected slice are there, if one is selected. */
export async function waitForSelection() {
  let end = () => {};
  await new Promise<void>((done) => {
    end = effect(() => {
      if (detail.value?.state !== "loading") done();
    });
  });
  end();
}
