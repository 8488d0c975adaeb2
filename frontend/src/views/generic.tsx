import { useMemo } from "preact/hooks";
import type { Query, Table, ViewEntry } from "../api.ts";
import { base, isComparable } from "../base.ts";
import { type Ready, ready as prepared, without } from "../columns.ts";
import { decimal, plural } from "../format.ts";
import { largest } from "../shapes.ts";
import { SlotContext, useSlot, useSlotOf } from "../slot.ts";
import { catalogue, choose, listedViews, openEntry, pageOf, parametersOf, traceState, useAnswer } from "../state.ts";
import { Bars } from "../widgets/bars.tsx";
import { Curves } from "../widgets/curve.tsx";
import { Donut, parts } from "../widgets/donut.tsx";
import { Flame } from "../widgets/flame.tsx";
import { Heat } from "../widgets/heat.tsx";
import { Histogram } from "../widgets/histogram.tsx";
import { PageParameters, Parameters } from "../widgets/parameters.tsx";
import { prose } from "../widgets/prose.tsx";
import { RowDetail } from "../widgets/row_detail.tsx";
import { type Drawn, useRows } from "../widgets/rows.ts";
import { SaveRows } from "../widgets/save.tsx";
import { DataTable } from "../widgets/table.tsx";
import { FilterBox, GroupBy, Sums, TopN, useTop } from "../widgets/tools.tsx";
import { Depth, TreeTable } from "../widgets/tree_table.tsx";
import { Answered, Notice } from "../widgets/waiting.tsx";
import { Compared } from "./compare.tsx";

const ADDITIVE = new Set(["count", "duration", "bytes", "flop"]); // what makes a whole together
const GREY = 0.5; // more than this share in "other", and a ring says nothing

/** The largest rows of each column that is worth a picture, of the rows that the filter lets through. */
function Charts({ ready, rows: { rows }, entry }: Drawn) {
  const top = useTop();
  const charted = ready.columns.filter(({ name }) => entry.charts.includes(name));
  return (
    <div class="charts" role="group" aria-label="Largest rows">
      {charted.map(({ name, title, kind, values }) => {
        const isPart = ADDITIVE.has(kind);
        const all = largest(rows, values as (number | null)[], top);
        const shares = isPart ? all : all.filter(({ row }) => row !== null);
        const whole = isPart ? all.reduce((sum, { value }) => sum + value, 0) : null;
        const other = all.find(({ row }) => row === null)?.value ?? 0;
        const named = shares.filter(({ row }) => row !== null).length;
        const note = `the largest ${named} of ${plural(rows.length, "row")}`;
        const drawn = { title, kind, note, parts: parts(shares, ready.nameOf) };
        const isRing = whole !== null && other <= GREY * whole;
        return isRing ? <Donut key={name} {...drawn} /> : <Bars key={name} {...drawn} whole={whole} />;
      })}
    </div>
  );
}

/** The picture above a table: the table's attributes say of which kind it is. */
function Picture(drawn: Drawn) {
  const { entry } = drawn;
  if (entry.matrix) return <Heat {...drawn} />;
  if (entry.bins) return <Histogram {...drawn} />;
  if (entry.charts.length) return <Charts {...drawn} />;
  if (drawn.ready.tree) return <Flame {...drawn} tree={drawn.ready.tree} />;
  return null;
}

/** The rows themselves. */
function Grid({ entry, table, ready, rows }: Drawn) {
  const detail = (row: number) => (
    <RowDetail ready={ready} table={table} row={row}>
      <Details table={table} row={row} />
    </RowDetail>
  );
  const shown = { ready, rows, detail, label: entry.title };
  return ready.tree ? <TreeTable {...shown} tree={ready.tree} /> : <DataTable {...shown} />;
}

/** The row's key, as far as the view has parameters for it; null where a part of it isn't known. */
function keyOf(detail: ViewEntry, { key }: ViewEntry, { data }: Table, row: number): Query | null {
  const named = detail.parameters.filter(({ name }) => key.includes(name)).map(({ name }) => name);
  const values = named.map((name) => [name, data[name]?.[row] ?? null] as const);
  const isKnown = values.length > 0 && values.every(([, value]) => value !== null); // else it would be of other rows too
  return isKnown ? Object.fromEntries(values.map(([name, value]) => [name, String(value)])) : null;
}

/** The views about one row. */
function Details({ table, row }: { table: Table; row: number }) {
  const { base, entry } = useSlot();
  const missing = traceState.value?.state === "ready" ? traceState.value.missing : {};
  // What the list of views says is missing, such as all of a device, isn't said in each row again.
  const isSaid = (id: string) =>
    listedViews.value.some((listed) => id in missing && missing[listed.id] === missing[id]);
  const details = catalogue.value.filter(({ id, detail_of }) => detail_of === base.id && !isSaid(id));
  const asked = details.map((detail) => ({ detail, about: keyOf(detail, entry, table, row) }));
  return asked.map(({ detail, about }) =>
    about && (
      <section key={`${detail.id} ${row}`} class="about" aria-label={detail.title}>
        <h2>{detail.title}</h2>
        <p class="quiet">{prose(detail.doc)}</p>
        <View base={detail} about={about} />
      </section>
    )
  );
}

const CutNote = ({ rows, of }: { rows: number; of: number }) => (
  <p class="cut" role="note">
    This report holds the first {decimal(rows)} of {plural(of, "row")}; sums and charts are of these alone.
  </p>
);

function NoRows({ entry }: { entry: ViewEntry }) {
  const chosen = Object.keys(parametersOf(entry));
  if (!chosen.length) {
    return (
      <Notice title={`${entry.title}: no rows`}>
        <p>{entry.hint}</p>
      </Notice>
    );
  }
  return (
    <Notice title={`${entry.title}: no rows for this choice`}>
      <p>The recording has none in the time, on the device or of the kind that is chosen here.</p>
      <button type="button" onClick={() => choose(Object.fromEntries(chosen.map((name) => [name, ""])))}>
        Show all
      </button>
    </Notice>
  );
}

function Tools({ drawn: { entry, table, ready, rows }, fixed }: { drawn: Drawn; fixed: string[] }) {
  return (
    <div class="tools">
      <FilterBox problem={rows.problem} />
      {rows.problem && <span class="problem" role="alert">No pattern: {rows.problem}</span>}
      <GroupBy />
      <Parameters entry={entry} fixed={fixed} />
      {entry.charts.length > 0 && !entry.bins && <TopN />}
      {ready.tree && <Depth tree={ready.tree} />}
      <span class="space" />
      <SaveRows table={table} rows={rows.rows} />
    </div>
  );
}

function Content({ table, entry, fixed }: { table: Table; entry: ViewEntry; fixed: string[] }) {
  // What the view was asked about is the same in every row.
  const ready: Ready = useMemo(() => without(prepared(table, entry), fixed), [table, entry, fixed.join()]);
  const rows = useRows(ready, entry);
  const drawn = { entry, table, ready, rows };
  if (!ready.count) return <NoRows entry={entry} />;
  if (entry.curves.length) return <Levels drawn={drawn} fixed={fixed} />;
  return (
    <>
      <Tools drawn={drawn} fixed={fixed} />
      <Picture {...drawn} />
      {table.cut_from && <CutNote rows={ready.count} of={table.cut_from} />}
      <Sums ready={ready} rows={rows.rows} />
      <Grid {...drawn} />
    </>
  );
}

/** Curves say it all; the rows behind them are below, for those who want to copy them. */
function Levels({ drawn, fixed }: { drawn: Drawn; fixed: string[] }) {
  const slot = useSlot();
  const isOpen = slot.get("rows") !== "";
  return (
    <>
      <Curves {...drawn} />
      <details
        class="levels"
        open={isOpen}
        onToggle={({ currentTarget: { open } }) => open !== isOpen && slot.go({ rows: open ? "1" : "" })}
      >
        <summary>{plural(drawn.ready.count, "row")} of the curve as a table</summary>
        {isOpen && (
          <>
            <Tools drawn={drawn} fixed={fixed} />
            <Sums ready={drawn.ready} rows={drawn.rows.rows} />
            <Grid {...drawn} />
          </>
        )}
      </details>
    </>
  );
}

const NOTHING: Query = {};

/** One view of the trace alone. */
function Alone({ about }: { about: Query }) {
  const { entry } = useSlot();
  const shown = useAnswer(entry.id, { ...parametersOf(entry), ...about });
  const fixed = Object.keys(about);
  const isBare = shown.answer?.state === "missing" || shown.answer?.state === "failed";
  return (
    <>
      {isBare && (
        <div class="tools">
          <GroupBy />
          <Parameters entry={entry} fixed={fixed} />
        </div>
      )}
      <Answered shown={shown} title={entry.title}>
        {(table) => <Content key={entry.id} table={table} entry={entry} fixed={fixed} />}
      </Answered>
    </>
  );
}

/** One view with its tools, its pictures and its table; `about` is the row that it tells more of. */
function View({ base: listed, about = NOTHING }: { base: ViewEntry; about?: Query }) {
  const slot = useSlotOf(listed);
  const isCompared = base.value !== null && isComparable(slot.entry);
  return (
    <SlotContext.Provider value={slot}>
      <section ref={slot.box} class="view">
        {isCompared ? <Compared entry={slot.entry} /> : <Alone about={about} />}
      </section>
    </SlotContext.Provider>
  );
}

/** The page of a view of the list: the view, and its parts below it. */
export function Generic() {
  const [main, ...others] = pageOf(openEntry.value!);
  const missing = traceState.value?.state === "ready" ? traceState.value.missing : {};
  // What the page lacks is said once, not again by each part that lacks the same.
  const drawn = others.filter(({ id }) => !(main!.id in missing) || missing[id] !== missing[main!.id]);
  return (
    <>
      <PageParameters views={[main!, ...others]} />
      <View key={main!.id} base={main!} />
      {drawn.map((part) => (
        <section key={part.id} class="part" aria-label={part.title}>
          <h2>{part.title}</h2>
          <p class="quiet">{prose(part.doc)}</p>
          <View base={part} />
        </section>
      ))}
    </>
  );
}
