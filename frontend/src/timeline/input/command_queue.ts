/** A queue for key commands that need an answer first: each starts where the one before ended. */

import { effect } from "@preact/signals";
import { detail } from "../state/selection.ts";

let waiting = 0;
let last: Promise<void> = Promise.resolve();

/** Runs a command after the queued ones; repeats of a held key are dropped while the queue isn't empty. */
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
