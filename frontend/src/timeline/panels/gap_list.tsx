/** The longest idle gaps of a device, each with its cause; a click zooms to it. */

import { Fragment, h } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Table, ViewEntry } from "../../api/types.ts";
import { useAnswer } from "../../app/answers.ts";
import { address, go, openView, slicesIn, stepWord, viewOfPanel } from "../../app/router.ts";
import { readableName } from "../../format/readable_names.ts";
import { decimal, plural, quantity, shorten } from "../../format/numbers.ts";
import { deviceNoun } from "../../format/vendor_words.ts";
import { matchesFilter, parseFilter } from "../../table/order.ts";
import { type Gap, gapState, gapText, rowOf } from "../model/idle_gaps.ts";
import { padRange } from "../model/ranges.ts";
import { selectedGap, setFind } from "../state/selection.ts";
import { type Source, sourceOf, sources } from "../state/sources.ts";
import { main } from "../state/traces.ts";
import { settled, zoomToRange } from "../state/viewport_state.ts";
import { Check, Menu } from "../../ui/choice.tsx";
import { LinkTo } from "../../ui/link.tsx";
import { AnswerView } from "../../ui/status.tsx";

const CULPRITS = "idle_culprits";
const FEW = 8; // culprits of a gap
const PAGE = 100;
const MOST = 5000; // rows that the view gives
const ROOM = 0.15; // margin at each side, as a share of the gap
const LONGEST = 70;

/** A predicate for gaps: whether the filter matches a gap's values or its description. */
function matcher(filter: string): (gap: Gap) => boolean {
  const parsed = parseFilter(filter);
  return (gap) => {
    const texts = Object.values(gap).filter((value) => typeof value === "string");
    return matchesFilter(parsed, [...texts, gapText(gap)].join("\n"));
  };
}

const rangeOf = (gap: Gap, { shift_ns }: Source) => {
  const from = Number(gap.start_ns) + shift_ns;
  return { from, to: from + Number(gap.dur_ns) };
};

function Row({ gap, source, most }: { gap: Gap; source: Source; most: number }) {
  const { dur_ns, device, step, ended_by } = gap;
  return (
    <li style={{ "--share": (Number(dur_ns) / most).toFixed(4) }}>
      <button type="button" class="link" onClick={() => zoomToRange(padRange(rangeOf(gap, source), ROOM))}>
        {quantity(Number(dur_ns), "duration")}
      </button>
      <span class="quiet">
        {deviceNoun()} {device}
        {step !== null && `, ${stepWord.value} ${step}`}
      </span>
      <span>
        {gapText(gap)}
        {ended_by !== null && (
          <span class="quiet" data-tip={String(ended_by)}>
            {` Ended by ${shorten(readableName(String(ended_by)), LONGEST)}`}
          </span>
        )}
      </span>
    </li>
  );
}

/** How many gaps; the view gives no more than the longest ones. */
function gapCountText(count: number, all: number): string {
  if (all < MOST) return plural(count, "gap");
  return count === all ? `The ${decimal(all)} longest gaps` : `${decimal(count)} of the ${decimal(all)} longest gaps`;
}

/** The causes of the clicked gap, each with what the host was doing, and a link that highlights that. */
function Culprits({ gap, source }: { gap: Gap; source: Source }) {
  const { device, start_ns, dur_ns } = gap;
  const query = { device: String(device), from_ns: String(start_ns), to_ns: String(Number(start_ns) + Number(dur_ns)) };
  const shown = useAnswer(CULPRITS, query, { ...source.place, version: source.stamp });
  return (
    <AnswerView shown={shown} title="Idle time by culprit">
      {(table) => (
        <ol class="gaps" aria-label="What the host was doing">
          {(table.data.total_ns ?? []).slice(0, FEW).map((total, row) => {
            const culprit = rowOf(table, row), { activity, host, source: at, idle_frac } = culprit;
            const slices = slicesIn(CULPRITS, (column) => table.data[column]?.[row] ?? null);
            return (
              <li key={row} style={{ "--share": Number(idle_frac).toFixed(4) }}>
                <span>{quantity(Number(total), "duration")}</span>
                <span class="quiet">{culprit[activity === null ? "cause in words" : "activity in words"]}</span>
                <span>
                  {host !== null && slices?.find
                    ? (
                      <button type="button" class="link" onClick={() => setFind(slices.find!)}>
                        {shorten(String(host), LONGEST)}
                      </button>
                    )
                    : host}
                  {at !== null && <span class="quiet">{` ${readableName(String(at))}`}</span>}
                </span>
              </li>
            );
          })}
        </ol>
      )}
    </AnswerView>
  );
}

/** Why the device was idle in the clicked gap. */
function Explanation({ gap, source }: { gap: Gap; source: Source }) {
  return (
    <section aria-label="The selected gap">
      <p>
        <b>{quantity(Number(gap.dur_ns), "duration")} {gapState(gap)}</b>{" "}
        <button type="button" class="link" onClick={() => zoomToRange(padRange(rangeOf(gap, source), ROOM))}>
          Zoom to it
        </button>{" "}
        {gapText(gap)}
        {gap.ended_by !== null && ` Ended by ${shorten(readableName(String(gap.ended_by)), LONGEST)}.`}
      </p>
      <Culprits key={`${gap.device} ${gap.start_ns}`} gap={gap} source={source} />
    </section>
  );
}

function Gaps({ table, source, onlyVisible }: { table: Table; source: Source; onlyVisible: boolean }) {
  const { from, to } = settled.value, [shown, show] = useState(PAGE);
  const all = useMemo(() => (table.data.start_ns ?? []).map((_, row) => rowOf(table, row)), [table]);
  const isMatch = useMemo(() => matcher(address.value.gaps ?? ""), [address.value.gaps]);
  const gaps = all.filter((gap) => {
    const range = rangeOf(gap, source);
    return isMatch(gap) && (!onlyVisible || (range.to > from && range.from < to));
  });
  const chosen = selectedGap.value;
  const selected = chosen?.source === source.id
    ? all.find(({ device, start_ns }) => device === chosen.device && start_ns === chosen.start_ns)
    : undefined;
  if (!gaps.length) return <p class="quiet">{all.length ? "No gap matches." : "No device was ever idle."}</p>;
  const idle = gaps.reduce((sum, { dur_ns }) => sum + Number(dur_ns), 0);
  return (
    <>
      {selected && <Explanation gap={selected} source={source} />}
      <p>
        <b>{gapCountText(gaps.length, all.length)}</b>, <b>{quantity(idle, "duration")}</b> in all
        {all.length >= MOST && !onlyVisible && ". For shorter ones, zoom in and choose Only visible ones."}
      </p>
      <ol class="gaps" aria-label="Longest gaps">
        {gaps.slice(0, shown).map((gap) => (
          <Row key={`${gap.device} ${gap.start_ns}`} gap={gap} source={source} most={Number(gaps[0]!.dur_ns)} />
        ))}
      </ol>
      {gaps.length > shown && (
        <button type="button" onClick={() => show(shown + PAGE)}>
          Show {PAGE} more of {decimal(gaps.length - shown)} shorter ones
        </button>
      )}
    </>
  );
}

function OfSource({ view, source, onlyVisible }: { view: ViewEntry; source: Source; onlyVisible: boolean }) {
  const place = { ...source.place, version: source.stamp };
  const shown = useAnswer(view.id, {}, place), { answer } = shown;
  const isCut = answer?.state === "ready" && answer.data.start_ns!.length >= MOST;
  const { from, to } = settled.value;
  const [from_ns, to_ns] = [from, to].map((time) => String(Math.round(time - source.shift_ns)));
  const within = useAnswer(
    view.id,
    { from_ns: from_ns!, to_ns: to_ns! },
    isCut && onlyVisible ? place : { ...place, span: "" },
  );
  return (
    <AnswerView shown={isCut && onlyVisible ? within : shown} title={view.title}>
      {(table) => <Gaps table={table} source={source} onlyVisible={onlyVisible} />}
    </AnswerView>
  );
}

export function GapList() {
  const [onlyVisible, setOnlyVisible] = useState(false);
  const [chosen, choose] = useState(main.value);
  const source = sourceOf(selectedGap.value?.source ?? chosen) ?? sources.value[0];
  const view = viewOfPanel("gaps");
  if (!source || !view) return null;
  return (
    <div class="gap-list">
      <div class="tools">
        {sources.value.length > 1 && (
          <Menu
            title="Worker"
            value={source.id}
            options={sources.value.map(({ id }) => [id, id])}
            onPick={choose}
          />
        )}
        <Check isOn={onlyVisible} set={setOnlyVisible}>Only visible ones</Check>
        <input
          type="search"
          value={address.value.gaps ?? ""}
          placeholder="Filter: words, -without, re:pattern"
          aria-label="Filter gaps"
          onInput={({ currentTarget: { value } }) => go({ gaps: value })}
        />
        <span class="space" />
        <LinkTo open={() => openView(view.id, address.value.gaps ?? "")}>As a table</LinkTo>
      </div>
      <OfSource key={source.id} view={view} source={source} onlyVisible={onlyVisible} />
    </div>
  );
}
