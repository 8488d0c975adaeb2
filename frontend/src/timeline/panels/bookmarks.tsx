/** All bookmarks, also those out of sight. */

import { decimal, exact, plural, quantity } from "../../format/numbers.ts";
import { type Geometry, labelPlaces, xOf } from "../model/geometry.ts";
import { padRange } from "../model/ranges.ts";
import { duration } from "../model/times.ts";
import type { Area, Mark } from "../model/url_codec.ts";
import { bookmarks, chosenBookmark, isFull, removeAllBookmarks, removeBookmark } from "../state/bookmarks.ts";
import { setArea } from "../state/selection.ts";
import { size, viewport, zoomToRange } from "../state/viewport_state.ts";

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
  if (mark.to < from || mark.from > to) zoomToRange(padRange(mark, 0.15));
  setArea(mark);
}

export function BookmarkList() {
  const marks = bookmarks.value;
  if (!marks.length) return null;
  return (
    <section class="kept" aria-label="Kept">
      <ul>
        {marks.map((mark) => (
          <li key={mark.letter}>
            <button
              type="button"
              class="letter"
              aria-pressed={chosenBookmark.value?.letter === mark.letter}
              aria-label={`Choose mark ${mark.letter}`}
              onClick={() => show(mark)}
            >
              {mark.letter}
            </button>
            <AreaWords area={mark} />
            <button
              type="button"
              class="plain"
              aria-label={`Remove mark ${mark.letter}`}
              onClick={() => removeBookmark(mark)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      {marks.length > 1 && (
        <button type="button" onClick={removeAllBookmarks}>Remove all {decimal(marks.length)}</button>
      )}
      {isFull.value && <p class="problem">No letter is left for another mark: remove one to keep one more.</p>}
    </section>
  );
}

const lengthOf = ({ from, to }: Mark): string => duration(to - from);

function Label({ mark, left, isShort }: { mark: Mark; left: number; isShort: boolean }) {
  const { letter } = mark;
  const isChosen = chosenBookmark.value?.letter === letter;
  return (
    <li class={isChosen ? "chosen" : ""} style={{ left: `${left}px` }}>
      <button
        type="button"
        aria-pressed={isChosen}
        aria-label={`Mark ${letter}, ${lengthOf(mark)}`}
        data-tip={`${lengthOf(mark)}, kept. A click chooses it`}
        onClick={() => setArea(mark)}
      >
        <b>{letter}</b>
        {!isShort && ` ${lengthOf(mark)}`}
      </button>
      <button
        type="button"
        aria-label={`Remove mark ${letter}`}
        data-tip="Remove it; Del removes the chosen one"
        onClick={() => removeBookmark(mark)}
      >
        ×
      </button>
    </li>
  );
}

export function BookmarkLabels() {
  const marks = bookmarks.value;
  if (!marks.length) return null;
  const { width } = size.value, range = viewport.value;
  const place: Pick<Geometry, "width" | "range"> = { width, range };
  const edges = marks.map(({ letter, from, to }) => ({ letter, left: xOf(place, from), right: xOf(place, to) }));
  return (
    <ul class="mark-labels" aria-label="Kept marks">
      {labelPlaces(edges, width).map(({ letter, ...where }) => (
        <Label
          key={letter}
          mark={marks.find((mark) => mark.letter === letter)!}
          {...where}
        />
      ))}
    </ul>
  );
}
