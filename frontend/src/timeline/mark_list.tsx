/** All kept marks, also those out of sight. */

import { decimal, exact, plural, quantity } from "../format.ts";
import { chosenMark, isFull, kept, remove, removeAll } from "./kept.ts";
import type { Area, Mark } from "./places.ts";
import { roomy } from "./ranges.ts";
import { setArea, viewport, zoomToRange } from "./state.ts";

/** "Δt 30.00 µs, from 310.0 µs to 340.0 µs, on 1 track" */
export function AreaWords({ area: { from, to, tracks } }: { area: Area }) {
  const [start, end] = [from, to].map((time) => quantity(time, "instant"));
  return (
    <span data-tip={`${exact(Math.round(from), "instant")} to ${exact(Math.round(to), "instant")}`}>
      <b>Δt {quantity(Math.round(to - from), "duration")}</b>, from {start} to {end}, on{" "}
      {tracks.length ? plural(tracks.length, "track") : "all tracks"}
    </span>
  );
}

/** Chooses a mark, and brings it in sight if nothing of it is. */
function show(mark: Mark) {
  const { from, to } = viewport.peek();
  if (mark.to < from || mark.from > to) zoomToRange(roomy(mark, 0.15));
  setArea(mark);
}

export function MarkList() {
  const marks = kept.value;
  if (!marks.length) return null;
  return (
    <section class="kept" aria-label="Kept">
      <ul>
        {marks.map((mark) => (
          <li key={mark.letter}>
            <button
              type="button"
              class="letter"
              aria-pressed={chosenMark.value?.letter === mark.letter}
              aria-label={`Choose mark ${mark.letter}`}
              onClick={() => show(mark)}
            >
              {mark.letter}
            </button>
            <AreaWords area={mark} />
            <button type="button" class="plain" aria-label={`Remove mark ${mark.letter}`} onClick={() => remove(mark)}>
              ×
            </button>
          </li>
        ))}
      </ul>
      {marks.length > 1 && <button type="button" onClick={removeAll}>Remove all {decimal(marks.length)}</button>}
      {isFull.value && <p class="problem">No letter is left for another mark: remove one to keep one more.</p>}
    </section>
  );
}
