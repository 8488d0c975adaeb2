/** The list of all bookmarks, and their labels in the ruler. */

import { h } from "preact";
import { decimal, exact, plural, quantity, shorten } from "../../format/numbers.ts";
import { type Geometry, labelPlaces, xOf } from "../model/geometry.ts";
import { padRange } from "../model/ranges.ts";
import { duration } from "../model/times.ts";
import type { Area, Bookmark } from "../model/url_codec.ts";
import {
  bookmarks,
  chosenBookmark,
  isFull,
  nameBookmark,
  removeAllBookmarks,
  removeBookmark,
  titleOf,
} from "../state/bookmarks.ts";
import { setArea } from "../state/selection.ts";
import { size, viewport, zoomToRange } from "../state/viewport_state.ts";

const MOST_LETTERS = 14; // of a name in the ruler

/** "Δt 30.00 µs, from 310.0 µs to 340.0 µs, on 1 track" */
export function AreaText({ area: { from, to, tracks } }: { area: Area }) {
  const [start, end] = [from, to].map((time) => quantity(time, "instant"));
  return (
    <span data-tip={`${exact(Math.round(from), "instant")} to ${exact(Math.round(to), "instant")}`}>
      <b>Δt {quantity(Math.round(to - from), "duration")}</b>, from {start} to {end}, on{" "}
      {tracks.length ? plural(tracks.length, "track") : "all tracks"}
    </span>
  );
}

/** Selects a bookmark, and scrolls to it if it isn't visible. */
function show(bookmark: Bookmark) {
  const { from, to } = viewport.peek();
  if (bookmark.to < from || bookmark.from > to) zoomToRange(padRange(bookmark, 0.15));
  setArea(bookmark);
}

export function BookmarkList() {
  const list = bookmarks.value;
  if (!list.length) return null;
  return (
    <section class="bookmarks" aria-label="Bookmarks">
      <ul>
        {list.map((bookmark) => (
          <li key={bookmark.letter}>
            <button
              type="button"
              class="letter"
              aria-pressed={chosenBookmark.value?.letter === bookmark.letter}
              aria-label={`Select bookmark ${bookmark.letter}`}
              onClick={() => show(bookmark)}
            >
              {bookmark.letter}
            </button>
            <input
              type="search"
              size={12}
              maxLength={60}
              value={bookmark.name}
              placeholder="Name"
              aria-label={`Name of bookmark ${bookmark.letter}`}
              onChange={({ currentTarget: { value } }) => nameBookmark(bookmark, value)}
            />
            <AreaText area={bookmark} />
            <button
              type="button"
              class="plain"
              aria-label={`Remove bookmark ${bookmark.letter}`}
              onClick={() => removeBookmark(bookmark)}
            >
              ×
            </button>
          </li>
        ))}
      </ul>
      {list.length > 1 && <button type="button" onClick={removeAllBookmarks}>Remove all {decimal(list.length)}</button>}
      {isFull.value && <p class="problem">All letters are used: remove a bookmark to add another.</p>}
    </section>
  );
}

const lengthOf = ({ from, to }: Bookmark): string => duration(to - from);

function Label({ bookmark, left, isShort }: { bookmark: Bookmark; left: number; isShort: boolean }) {
  const { letter, name } = bookmark, length = lengthOf(bookmark), text = name || length;
  const isChosen = chosenBookmark.value?.letter === letter;
  return (
    <li class={isChosen ? "chosen" : ""} style={{ left: `${left}px` }}>
      <button
        type="button"
        aria-pressed={isChosen}
        aria-label={`Bookmark ${titleOf(bookmark)}, ${length}`}
        data-tip={`${name ? `${name}, ` : ""}${length}. Click to select it`}
        onClick={() => setArea(bookmark)}
      >
        <b>{letter}</b>
        {!isShort && ` ${shorten(text, MOST_LETTERS)}`}
      </button>
      <button
        type="button"
        aria-label={`Remove bookmark ${letter}`}
        data-tip="Remove it; Del removes the selected one"
        onClick={() => removeBookmark(bookmark)}
      >
        ×
      </button>
    </li>
  );
}

export function BookmarkLabels() {
  const list = bookmarks.value;
  if (!list.length) return null;
  const { width } = size.value, range = viewport.value;
  const place: Pick<Geometry, "width" | "range"> = { width, range };
  const edges = list.map(({ letter, from, to }) => ({ letter, left: xOf(place, from), right: xOf(place, to) }));
  return (
    <ul class="bookmark-labels" aria-label="Bookmark labels">
      {labelPlaces(edges, width).map(({ letter, ...where }) => (
        <Label
          key={letter}
          bookmark={list.find((bookmark) => bookmark.letter === letter)!}
          {...where}
        />
      ))}
    </ul>
  );
}
