/** What ran in the selected area, by name. */

import { useMemo, useRef } from "preact/hooks";
import type { Table, ViewEntry } from "../../api/types.ts";
import { quantity } from "../../format/numbers.ts";
import { prepareTable } from "../../table/columns.ts";
import { TableScopeContext, useTableScopeOf } from "../../table/table_scope.ts";
import { padRange } from "../model/ranges.ts";
import type { Area } from "../model/url_codec.ts";
import { ComparedAreas } from "./area_comparison.tsx";
import { useAreaAnswers, workersOf } from "./area_query.ts";
import { AreaRows, entryOf } from "./area_rows.tsx";
import { AreaText, BookmarkList } from "./bookmarks.tsx";
import { addBookmark, baseBookmark, bookmarks, chosenBookmark, compareWith, isFull } from "../state/bookmarks.ts";
import { area, setArea } from "../state/selection.ts";
import { type Source, sourceOf } from "../state/sources.ts";
import { zoomToRange } from "../state/viewport_state.ts";
import { Failure, Skeleton } from "../../ui/status.tsx";

function Content({ table, entry }: { table: Table; entry: ViewEntry }) {
  const ready = prepareTable(table, entry);
  if (!ready.count) return <p class="quiet">Nothing ran here: these tracks have no slice in this time.</p>;
  return <AreaRows table={table} ready={ready} entry={entry} />;
}

/** The part of the area that is of one worker. */
function OfSource({ source, chosen }: { source: Source; chosen: Area }) {
  const id = `in_area.${source.id}`;
  const entry = useMemo(() => entryOf(id, "self_ns"), [id]); // totals of slices that lie in each other add up to nothing
  const scope = useTableScopeOf(entry);
  const answer = useAreaAnswers([[source, chosen]])[0]!;
  const table = useMemo(() => (answer?.state === "ready" ? { ...answer, view: "area" } : null), [answer]);
  const last = useRef<Table | null>(null);
  if (table) last.current = table;
  const isWaiting = !answer || answer.state === "loading";
  return (
    <TableScopeContext.Provider value={scope}>
      <section ref={scope.box} class="view" aria-label={`Area, ${source.id}`} aria-busy={isWaiting || undefined}>
        {answer?.state === "failed" && <Failure {...answer} />}
        {isWaiting && !last.current && <Skeleton progress={answer?.state === "loading" ? answer.progress : null} />}
        {last.current && answer?.state !== "failed" && (
          <div class={isWaiting ? "dimmed" : ""}>
            <Content table={last.current} entry={entry} />
          </div>
        )}
      </section>
    </TableScopeContext.Provider>
  );
}

/** Which bookmark the area is compared with. */
function BaseChoice() {
  const others = bookmarks.value.filter(({ letter }) => letter !== chosenBookmark.value?.letter);
  if (!others.length) return null;
  return (
    <label data-tip="Compare the area with a bookmark, by name">
      Compare with{" "}
      <select
        aria-label="Compare with"
        value={baseBookmark.value?.letter ?? ""}
        onChange={({ currentTarget: { value } }) => compareWith(value)}
      >
        <option value="">nothing</option>
        {others.map(({ letter, from, to }) => (
          <option key={letter} value={letter}>{`${letter}, ${quantity(to - from, "duration")}`}</option>
        ))}
      </select>
    </label>
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
        {chosenBookmark.value ? `Bookmark ${chosenBookmark.value.letter}` : "Bookmark"}
      </button>
      <button type="button" onClick={() => setArea(null)}>Clear</button>
      <BaseChoice />
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
          for the time of the selected slice: what ran there is listed here by name.
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
