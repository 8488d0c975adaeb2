/** What ran in the selected area. */

import { h } from "preact";
import { Menu } from "../../ui/choice.tsx";
import { quantity } from "../../format/numbers.ts";
import { padRange } from "../model/ranges.ts";
import type { Area } from "../model/url_codec.ts";
import { ComparedAreas } from "./area_comparison.tsx";
import { AreaCounters } from "./area_counters.tsx";
import { areaForm, AreaForms } from "./area_form.tsx";
import { AreaPivot } from "./area_pivot.tsx";
import { workersOf } from "./area_query.ts";
import { AreaText, BookmarkList } from "./bookmarks.tsx";
import {
  addBookmark,
  baseBookmark,
  bookmarks,
  chosenBookmark,
  compareWith,
  isFull,
  titleOf,
} from "../state/bookmarks.ts";
import { area, setArea } from "../state/selection.ts";
import { type Source, sourceOf } from "../state/sources.ts";
import { zoomToRange } from "../state/viewport_state.ts";

/** The part of the area that is of one worker, in the chosen form. */
function OfSource({ source, chosen }: { source: Source; chosen: Area }) {
  const form = areaForm.value;
  if (form === "counters") return <AreaCounters source={source} chosen={chosen} />;
  return <AreaPivot source={source} chosen={chosen} isFlame={form === "flame"} />;
}

/** Which bookmark the area is compared with. */
function BaseChoice() {
  const others = bookmarks.value.filter(({ letter }) => letter !== chosenBookmark.value?.letter);
  if (!others.length) return null;
  return (
    <Menu
      title="Compare with"
      tip="Compare the area with a bookmark, by name"
      value={baseBookmark.value?.letter ?? ""}
      options={[
        ["", "nothing"],
        ...others.map((one) => [one.letter, `${titleOf(one)}, ${quantity(one.to - one.from, "duration")}`] as const),
      ]}
      onPick={compareWith}
    />
  );
}

function Head({ chosen }: { chosen: Area }) {
  return (
    <div class="tools range">
      <AreaText area={chosen} />
      <button type="button" onClick={() => zoomToRange(padRange(chosen))}>Zoom to it</button>
      <button
        type="button"
        disabled={chosenBookmark.value !== null || isFull.value}
        data-tip="Bookmark this area (⇧M), to return to it or compare with it"
        onClick={() => addBookmark(chosen)}
      >
        {chosenBookmark.value ? `Bookmark ${titleOf(chosenBookmark.value)}` : "Bookmark"}
      </button>
      <button type="button" onClick={() => setArea(null)}>Clear</button>
      <BaseChoice />
      {!baseBookmark.value && <AreaForms />}
    </div>
  );
}

export function AreaTable() {
  const chosen = area.value;
  if (!chosen) {
    return (
      <div class="area-table">
        <BookmarkList />
        <p class="quiet">
          Drag over tracks, or over the ruler for all of them, or press <kbd>R</kbd>{" "}
          for the time of the selected slice: what ran there is listed here.
        </p>
      </div>
    );
  }
  const shown = workersOf(chosen);
  return (
    <div class="area-table">
      <BookmarkList />
      <Head chosen={chosen} />
      {baseBookmark.value && <ComparedAreas of={baseBookmark.value} chosen={chosen} />}
      {!baseBookmark.value && shown.map((id) => {
        const source = sourceOf(id);
        if (!source) return <p key={id} class="problem">The worker {id} isn't shown.</p>;
        return (
          <div key={id}>
            {shown.length > 1 && <h3>{id}</h3>}
            <OfSource source={source} chosen={chosen} />
          </div>
        );
      })}
    </div>
  );
}
