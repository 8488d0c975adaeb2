/** Long work in time slices: a generator pauses often, and the page draws and takes input at some of its pauses. */

const SLICE_MS = 8; // half a frame: the other half is for what the page draws

/** Calls a function once the page rests. */
export const whenIdle: (act: () => void) => unknown = globalThis.requestIdleCallback ?? setTimeout;

/** Works without a pause. */
export function finish<T>(work: Generator<void, T>): T {
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}

/** Works in slices of so many milliseconds, then hands over the result, in a task of its own; returns what drops both. */
export function workInSlices<T>(
  work: Generator<void, T>,
  take: (result: T) => void,
  milliseconds = SLICE_MS,
  wait: typeof whenIdle = setTimeout,
): () => void {
  let isDropped = false, step: IteratorResult<void, T> | undefined;
  const goOn = () => {
    if (isDropped) return;
    if (step?.done) return take(step.value);
    const until = performance.now() + milliseconds;
    do step = work.next(); while (!step.done && performance.now() < until);
    wait(goOn);
  };
  wait(goOn);
  return () => {
    isDropped = true;
  };
}
