/** What ran in the selected area, by name. */

import { useMemo, useRef } from "preact/hooks";
import type { Failed, Loading, Table, ViewEntry } from "../api.ts";
import { type Ready, ready as prepared } from "../columns.ts";
import { SlotContext, useSlotOf } from "../slot.ts";
import { RowDetail } from "../widgets/row_detail.tsx";
import { useRows } from "../widgets/rows.ts";
import { SaveRows } from "../widgets/save.tsx";
import { DataTable } from "../widgets/table.tsx";
import { FilterBox, Sums } from "../widgets/tools.tsx";
import { Failure, Skeleton } from "../widgets/waiting.tsx";
import { useAsked } from "./asking.ts";
import { chosenMark, isFull, keep } from "./kept.ts";
import { AreaWords, MarkList } from "./mark_list.tsx";
import type { Area } from "./places.ts";
import { roomy } from "./ranges.ts";
import { area, setArea, setFind, type Source, sourceOf, sources, zoomToRange } from "./state.ts";

/** The table as if it were a view, so that what draws views draws it. */
const entryOf = (id: string): ViewEntry => ({
  id,
  title: "Area",
  group: "Overview",
  doc: "",
  variant_of: null,
  variant: "",
  part_of: null,
  detail_of: null,
  within: "moments",
  scope: "recording",
  hint: "",
  parameters: [],
  columns: [],
  key: ["name", "category"],
  weight: "self_ns", // totals of slices that lie in each other add up to nothing
  charts: [],
  parent: null,
  flames: [],
  curves: [],
  series: [],
  marks: null,
  matrix: null,
  bins: null,
});

/** A row's slices, wherever they are in the recording. */
function FindRow({ table: { data }, row }: { table: Table; row: number }) {
  const wish = { name: data.name?.[row] ?? null, category: data.category?.[row] ?? null };
  return (
    <p>
      <button type="button" onClick={() => setFind(wish)}>Show its slices in the timeline</button>
    </p>
  );
}

function Rows({ table, ready, entry }: { table: Table; ready: Ready; entry: ViewEntry }) {
  const rows = useRows(ready, entry);
  const detail = (row: number) => (
    <RowDetail ready={ready} table={table} row={row}>
      <FindRow table={table} row={row} />
    </RowDetail>
  );
  return (
    <>
      <div class="tools">
        <FilterBox problem={rows.problem} />
        {rows.problem && <span class="problem" role="alert">No pattern: {rows.problem}</span>}
        <Sums ready={ready} rows={rows.rows} />
        <span class="space" />
        <SaveRows table={table} rows={rows.rows} />
      </div>
      <DataTable ready={ready} rows={rows} detail={detail} label={entry.title} />
    </>
  );
}

function Content({ table, entry }: { table: Table; entry: ViewEntry }) {
  const ready = useMemo(() => prepared(table, entry), [table, entry]);
  if (!ready.count) return <p class="quiet">Nothing ran here: no slice of these tracks reaches into this time.</p>;
  return <Rows table={table} ready={ready} entry={entry} />;
}

/** The part of the area that is of one worker. */
function OfSource({ source, chosen: { from, to, tracks } }: { source: Source; chosen: Area }) {
  const id = `in_area.${source.id}`;
  const entry = useMemo(() => entryOf(id), [id]);
  const slot = useSlotOf(entry);
  const own = tracks.length
    ? tracks.filter((place) => place.source === source.id).map(({ track }) => track)
    : source.meta.tracks.map((_, track) => track);
  const [from_ns, to_ns] = [from, to].map((time) => String(Math.round(time - source.shift_ns)));
  const question = { from_ns: from_ns!, to_ns: to_ns!, tracks: own.join(",") };
  const answer = useAsked<Loading | Failed | Omit<Table, "view">>(source, "timeline/area", question);
  const table = useMemo(() => (answer?.state === "ready" ? { ...answer, view: "area" } : null), [answer]);
  const last = useRef<Table | null>(null);
  if (table) last.current = table;
  const isWaiting = !answer || answer.state === "loading";
  return (
    <SlotContext.Provider value={slot}>
      <section ref={slot.box} class="view" aria-label={`Area, ${source.id}`} aria-busy={isWaiting || undefined}>
        {answer?.state === "failed" && <Failure {...answer} />}
        {isWaiting && !last.current && <Skeleton progress={answer?.state === "loading" ? answer.progress : null} />}
        {last.current && answer?.state !== "failed" && (
          <div class={isWaiting ? "dimmed" : ""}>
            <Content table={last.current} entry={entry} />
          </div>
        )}
      </section>
    </SlotContext.Provider>
  );
}

function Head({ chosen }: { chosen: Area }) {
  return (
    <div class="tools range">
      <AreaWords area={chosen} />
      <button type="button" onClick={() => zoomToRange(roomy(chosen))}>Zoom in on it</button>
      <button
        type="button"
        disabled={chosenMark.value !== null || isFull.value}
        data-tip="Keep this mark while others are made (⇧M)"
        onClick={() => keep(chosen)}
      >
        {chosenMark.value ? `Kept as ${chosenMark.value.letter}` : "Keep"}
      </button>
      <button type="button" onClick={() => setArea(null)}>Clear</button>
    </div>
  );
}

export function AreaTable() {
  const chosen = area.value;
  if (!chosen) {
    return (
      <div class="area-table">
        <MarkList />
        <p class="quiet">
          Drag over tracks, or over the ruler for all of them, or press <kbd>R</kbd>{" "}
          for the time of the selected slice: what ran there stands here then, by name.
        </p>
      </div>
    );
  }
  const places = chosen.tracks.length ? chosen.tracks.map(({ source }) => source) : sources.value.map(({ id }) => id);
  const shown = [...new Set(places)];
  return (
    <div class="area-table">
      <MarkList />
      <Head chosen={chosen} />
      {shown.map((id) => {
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
