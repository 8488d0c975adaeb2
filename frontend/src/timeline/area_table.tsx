/** What ran in the selected area, by name. */

import { useMemo, useRef } from "preact/hooks";
import type { Table, ViewEntry } from "../api.ts";
import { ready as prepared } from "../columns.ts";
import { quantity } from "../format.ts";
import { SlotContext, useSlotOf } from "../slot.ts";
import { Failure, Skeleton } from "../widgets/waiting.tsx";
import { type AreaAnswer, questionOf, workersOf } from "./area_questions.ts";
import { AreaRows, entryOf } from "./area_rows.tsx";
import { useAsked } from "./asking.ts";
import { ComparedAreas } from "./compared_areas.tsx";
import { base, chosenMark, compareWith, isFull, keep, kept } from "./kept.ts";
import { AreaWords, MarkList } from "./mark_list.tsx";
import type { Area } from "./places.ts";
import { roomy } from "./ranges.ts";
import { area, setArea, type Source, sourceOf, zoomToRange } from "./state.ts";

function Content({ table, entry }: { table: Table; entry: ViewEntry }) {
  const ready = useMemo(() => prepared(table, entry), [table, entry]);
  if (!ready.count) return <p class="quiet">Nothing ran here: no slice of these tracks reaches into this time.</p>;
  return <AreaRows table={table} ready={ready} entry={entry} />;
}

/** The part of the area that is of one worker. */
function OfSource({ source, chosen }: { source: Source; chosen: Area }) {
  const id = `in_area.${source.id}`;
  const entry = useMemo(() => entryOf(id, "self_ns"), [id]); // totals of slices that lie in each other add up to nothing
  const slot = useSlotOf(entry);
  const answer = useAsked<AreaAnswer>(questionOf(source, chosen));
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

/** With which of the kept marks the area is compared. */
function BaseChoice() {
  const marks = kept.value.filter(({ letter }) => letter !== chosenMark.value?.letter);
  if (!marks.length) return null;
  return (
    <label data-tip="What ran in the area beside what ran in a kept mark, by name">
      Compare with{" "}
      <select
        aria-label="Compare with"
        value={base.value?.letter ?? ""}
        onChange={({ currentTarget: { value } }) => compareWith(value)}
      >
        <option value="">nothing</option>
        {marks.map(({ letter, from, to }) => (
          <option key={letter} value={letter}>{`${letter}, ${quantity(to - from, "duration")}`}</option>
        ))}
      </select>
    </label>
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
        data-tip="Keep this mark (⇧M): it stays, and others can be compared with it"
        onClick={() => keep(chosen)}
      >
        {chosenMark.value ? `Kept as ${chosenMark.value.letter}` : "Keep"}
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
        <MarkList />
        <p class="quiet">
          Drag over tracks, or over the ruler for all of them, or press <kbd>R</kbd>{" "}
          for the time of the selected slice: what ran there stands here then, by name.
        </p>
      </div>
    );
  }
  const shown = workersOf(chosen);
  return (
    <div class="area-table">
      <MarkList />
      <Head chosen={chosen} />
      {base.value && <ComparedAreas of={base.value} chosen={chosen} />}
      {!base.value && shown.map((id) => {
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
