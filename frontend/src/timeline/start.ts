/** Begins the timeline: what it follows, and what it asks about what is selected and what is looked for. */

import { effect, untracked } from "@preact/signals";
import type { Hits, SliceFacts } from "./model.ts";
import { findText } from "./places.ts";
import { asked, detail, find, followPlace, found, recordings, selection, sourceOf, sources } from "./state.ts";

function followSelection(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    void recordings.value;
    const chosen = selection.value;
    const source = chosen && untracked(() => sourceOf(chosen.source));
    stop.abort();
    stop = new AbortController();
    if (!source) return void (detail.value = null);
    detail.value = { state: "loading", progress: null };
    void asked<SliceFacts>(source, "timeline/slice", { slice: String(chosen.slice) }, stop.signal).then((answer) => {
      if (selection.peek() === chosen) detail.value = answer;
    });
  });
  return () => {
    stop.abort();
    end();
    detail.value = null;
  };
}

function followFind(): () => void {
  let stop = new AbortController();
  const end = effect(() => {
    void recordings.value;
    const wish = find.value, text = findText(wish);
    stop.abort();
    const { signal } = stop = new AbortController();
    found.value = wish && { find: wish, text, answers: {} };
    for (const source of wish ? untracked(() => sources.value) : []) {
      void asked<Hits>(source, "timeline/find", { find: text }, signal).then((answer) => {
        const now = found.peek();
        if (now && !signal.aborted) found.value = { ...now, answers: { ...now.answers, [source.id]: answer } };
      });
    }
  });
  return () => {
    stop.abort();
    end();
  };
}

/** Begins to follow the address; returns what ends it. */
export function startTimeline(): () => void {
  const ends = [followPlace(), followSelection(), followFind()];
  return () => ends.forEach((end) => end());
}
