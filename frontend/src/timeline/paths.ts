/**
 * The critical paths over the shown workers, while they are wanted: in the address `critical=1` for each worker's own,
 * `critical=ranks` for the one across all ranks of the run.
 */

import { computed, effect, signal, untracked } from "@preact/signals";
import { follow } from "../api.ts";
import { address, go } from "../state.ts";
import type { AcrossStretch, PathAnswer, SharesAnswer, Stretch } from "./model.ts";
import { asked, main, settled, shownWorkers, type Source, sources } from "./state.ts";

/** What is asked for beyond each edge of what is in sight, as a share of it: room to move without a new question. */
const BEYOND = 0.5;

/** Which path is drawn. */
export type PathKind = "none" | "own" | "across";
const SPELLED: Record<PathKind, string> = { none: "", own: "1", across: "ranks" };

export const pathKind = computed((): PathKind =>
  (Object.keys(SPELLED) as PathKind[]).find((kind) => SPELLED[kind] === (address.value.critical ?? "")) ?? "none"
);
export const showPath = (kind: PathKind) => go({ critical: SPELLED[kind] });

/** Which paths there are to choose from: one across ranks once several workers are shown, or it is drawn already. */
export const pathKinds = computed((): PathKind[] => {
  const hasAcross = shownWorkers.value.length > 1 || pathKind.value === "across";
  return ["none", "own", ...(hasAcross ? ["across" as const] : [])];
});

/** On to the next kind of path, and after the last one to none. */
export function turnPath() {
  const kinds = pathKinds.peek();
  showPath(kinds[(kinds.indexOf(pathKind.peek()) + 1) % kinds.length]!);
}

/** The stretches in sight, by source; null: the answer is on its way. */
export const paths = signal<Record<string, (Stretch | AcrossStretch)[] | null>>({});

/** Why there are none of some sources. */
export const pathFailures = signal<Record<string, string>>({});

/** On whom the path across ranks lies, of what is in sight; null: nobody asked. */
export const shares = signal<SharesAnswer | null>(null);

interface Window {
  from: number;
  to: number;
}

const rangeOn = ({ shift_ns }: Source, { from, to }: Window) => ({
  from_ns: String(Math.floor(from - shift_ns)),
  to_ns: String(Math.ceil(to - shift_ns)),
});

/** Asks for what of the path lies on a source; `place` is the main one's where the path is the one across ranks. */
async function ask(source: Source, window: Window, place: Source["place"] | null, stop: AbortSignal) {
  const { id } = source;
  const room = (window.to - window.from) * BEYOND;
  const range = rangeOn(source, { from: window.from - room, to: window.to + room });
  const answer = place
    ? await asked<PathAnswer<AcrossStretch>>(source, "timeline/path_across_ranks", {
      ...range,
      main_worker: place.worker,
      main_span: place.span,
    }, stop)
    : await asked<PathAnswer>(source, "timeline/path", range, stop);
  if (stop.aborted) return;
  paths.value = { ...paths.peek(), [id]: answer.state === "ready" ? answer.stretches : [] };
  if (answer.state === "failed") pathFailures.value = { ...pathFailures.peek(), [id]: answer.message };
}

/** Asks on whom the path lies first: that takes summaries of all recordings, and says how far they are. */
async function askAcross(list: Source[], window: Window, stop: AbortSignal) {
  const own = list.find(({ id }) => id === main.peek());
  if (!own) return;
  const query = { ...own.place, stamp: own.stamp, ...rangeOn(own, window) };
  await follow<SharesAnswer>("timeline/path_shares", query, (answer) => (shares.value = answer), stop);
  if (stop.aborted || shares.peek()?.state !== "ready") return;
  for (const source of list) void ask(source, window, own.place, stop);
}

/** Keeps the paths of what is in sight; returns what ends it. */
export function followPaths(): () => void {
  let stop = new AbortController();
  let before: PathKind = "none";
  const end = effect(() => {
    const window = settled.value, kind = pathKind.value;
    const shown = kind === "none" ? [] : sources.value;
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    untracked(() => {
      const known = kind === before ? paths.peek() : {};
      if (kind !== before) shares.value = null;
      before = kind;
      paths.value = Object.fromEntries(shown.map(({ id }) => [id, known[id] ?? null]));
      pathFailures.value = {};
      if (kind === "across") void askAcross(shown, window, signal);
      else for (const source of shown) void ask(source, window, null, signal);
    });
  });
  return () => {
    stop.abort();
    end();
    paths.value = {};
    pathFailures.value = {};
    shares.value = null;
  };
}

/** The pieces of the drawn path that lie on a slice, the longest first. */
export function piecesOn(source: string, slice: number): (Stretch | AcrossStretch)[] {
  const pieces = (paths.value[source] ?? []).filter((piece) => piece.slice?.slice === slice);
  return pieces.sort((a, b) => b.to_ns - b.from_ns - (a.to_ns - a.from_ns));
}
