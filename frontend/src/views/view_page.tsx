import { Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import { isReport } from "../api/report.ts";
import { keyOfRow } from "../api/row_slices.ts";
import type { Picture as PictureKind, PictureOf, Query, Table, ViewEntry } from "../api/types.ts";
import { cachedTable, NOWHERE, tableOf, type TracePlace, useAdvised, useAnswer } from "../app/answers.ts";
import { baseLabels, comparisonBase } from "../app/comparison_base.ts";
import {
  address,
  choose,
  detailsOf,
  entries,
  go,
  isFindingViews,
  isInSnapshot,
  labelsOf,
  leadOf,
  missing,
  openEntry,
  openTab,
  openTrace,
  pageOf,
  parametersOf,
  placeLabels,
  slicesIn,
  snapshotDetailsOf,
  snapshotPlace,
} from "../app/router.ts";
import { BandsChart } from "../charts/bands.tsx";
import { Curves } from "../charts/curve_chart.tsx";
import { FlameGraph } from "../charts/flame_graph.tsx";
import { Heatmap } from "../charts/heatmap.tsx";
import { Histogram } from "../charts/histogram.tsx";
import { IdleBars } from "../charts/idle_bars.tsx";
import { PartBars } from "../charts/part_bars.tsx";
import { RangeBars } from "../charts/range_bars.tsx";
import { RooflineChart } from "../charts/roofline.tsx";
import { StepColumns } from "../charts/step_columns.tsx";
import { Treemap } from "../charts/treemap.tsx";
import { plural, quantity } from "../format/numbers.ts";
import { hiddenColumns } from "../table/column_choice.ts";
import { type DrawnColumn, omitColumns, prepareTable, type Ready } from "../table/columns.ts";
import { RowDetail } from "../table/row_detail.tsx";
import { type DrawnTable, useRows } from "../table/rows.ts";
import { SaveRows } from "../table/save.tsx";
import { DataTable } from "../table/table.tsx";
import { Scoped, useTableScope } from "../table/table_scope.tsx";
import { Columns, FilterBox, Sums } from "../table/tools.tsx";
import { Depth, TreeTable } from "../table/tree_table.tsx";
import { AnswerView, Comparing, Notice } from "../ui/status.tsx";
import { ComparedView } from "./comparison.tsx";
import { PageParameters, Parameters } from "./parameters.tsx";
import { RowCalls, RowContext } from "./row_facts.tsx";
import { Sentence, type Worse } from "./sentence.tsx";

/** The picture above a table. */
function Picture(drawn: DrawnTable) {
  const { entry: { picture }, ready: { tree } } = drawn;
  switch (picture?.kind) {
    case "bands":
      return <BandsChart {...drawn} picture={picture} />;
    case "heatmap":
      return <Heatmap {...drawn} picture={picture} />;
    case "histogram":
      return <Histogram {...drawn} picture={picture} />;
    case "roofline":
      return <RooflineChart {...drawn} picture={picture} />;
    case "step_columns":
      return <StepColumns {...drawn} />;
    case "treemap":
      return <Treemap {...drawn} picture={picture} />;
    case "tree":
      return tree && <FlameGraph {...drawn} tree={tree} picture={picture} />;
  }
  return null;
}

/** The rows themselves. */
function Grid({ entry, table, ready: whole, rows }: DrawnTable) {
  const scope = useTableScope(), choice = scope.get("columns");
  const ready = useMemo(() => omitColumns(whole, hiddenColumns(whole, scope).map(({ name }) => name)), [whole, choice]);
  const detail = (row: number, inSight: DrawnColumn[]) => {
    const valueOf = (column: string) => table.data[column]?.[row] ?? null;
    // Not again for a row in a drawer.
    const slices = !isReport && entry.slices && entry.place.kind !== "detail" && slicesIn(entry.id, valueOf);
    const key = slices && keyOfRow(entry, valueOf, address.value["set.phase"] ?? "");
    return (
      <RowDetail {...{ ready: whole, table, row, inSight }}>
        {slices && slices.find && <RowCalls find={slices.find} />}
        {key && <RowContext find={key} />}
        <Details table={table} row={row} />
      </RowDetail>
    );
  };
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
  const scope = useTableScope(), { entry } = scope, open = scope.get("open");
  // What the panel already reports as missing isn't repeated in each row.
  const tabs = entries.value.flatMap((one) => one.tabs);
  const isReported = (id: string) =>
    tabs.some((tab) => id in missing.value && missing.value[tab.id] === missing.value[id]);
  const snapshot = snapshotPlace.value;
  const details = [
    ...detailsOf(entry.id).filter(({ id }) => !isReported(id)).map((detail) => ({ detail, place: undefined })),
    ...(snapshot ? snapshotDetailsOf(entry.id).map((detail) => ({ detail, place: snapshot })) : []),
  ];
  const rowDetails = details.map(({ detail, place }) => ({ detail, place, about: keyOf(detail, entry, table, row) }));
  // A lone one is unfolded until somebody folds it.
  const isOpen = (id: string) => open === id || (open === "1" && details.length === 1);
  return rowDetails.map(({ detail, place, about }) =>
    about && (
      <details
        key={`${detail.id} ${row}`}
        class="about"
        open={isOpen(detail.id)}
        onToggle={({ currentTarget }) =>
          currentTarget.open !== isOpen(detail.id) && scope.go({ open: currentTarget.open ? detail.id : "folded" })}
      >
        <summary data-tip={detail.doc}>{detail.title}</summary>
        {isOpen(detail.id) && <View entry={detail} about={about} place={place} />}
      </details>
    )
  );
}

function NoRows({ entry }: { entry: ViewEntry }) {
  const chosen = Object.keys(parametersOf(entry));
  if (!chosen.length && entry.place.kind === "part") return <p class="quiet">{entry.hint}</p>;
  if (!chosen.length) {
    return (
      <Notice title={entry.title}>
        <p>{entry.hint}</p>
      </Notice>
    );
  }
  return (
    <Notice title={`${entry.title}: no rows for this choice`}>
      <p>The recording has no rows for the selected time, device or kind.</p>
      <button type="button" onClick={() => choose(Object.fromEntries(chosen.map((name) => [name, ""])))}>
        Show all
      </button>
    </Notice>
  );
}

function Tools({ drawn: { entry, table, ready, rows }, fixed }: { drawn: DrawnTable; fixed: string[] }) {
  return (
    <div class="tools">
      <FilterBox problem={rows.problem} />
      <Parameters entry={entry} fixed={fixed} />
      {ready.tree && <Depth tree={ready.tree} />}
      <span class="space" />
      <Columns ready={ready} />
      <SaveRows table={table} rows={rows.rows} />
    </div>
  );
}

/** A large picture, and what its rows, folded below it, are `of`; nothing where they are not folded. */
function largePicture(picture: PictureKind, drawn: DrawnTable) {
  switch (picture.kind) {
    case "lines":
      return { drawing: <ComparedCurves {...drawn} picture={picture} />, of: "the curve" };
    case "stacked":
      return {
        drawing: <IdleBars {...drawn} picture={picture} />,
        of: picture.only ? "devices and streams" : "devices",
      };
    case "range_bars":
      return { drawing: <RangeBars {...drawn} picture={picture} />, of: "" };
    case "part_bars":
      return { drawing: <PartBars {...drawn} picture={picture} />, of: picture.is_of_steps ? "the bars" : "" };
  }
  return null;
}

function Content({ table, entry, fixed }: { table: Table; entry: ViewEntry; fixed: string[] }) {
  const whole = prepareTable(table, entry);
  // Fixed parameters have the same value in every row.
  const ready: Ready = useMemo(() => omitColumns(whole, fixed), [whole, fixed.join()]);
  const rows = useRows(ready, entry);
  const drawn = { entry, table, ready, rows };
  if (!ready.count) return <NoRows entry={entry} />;
  const { picture } = entry, large = picture && largePicture(picture, drawn);
  if (large) {
    return (
      <>
        {large.drawing}
        {large.of ? <FoldedRows drawn={drawn} fixed={fixed} of={large.of} /> : <Rows drawn={drawn} fixed={fixed} />}
      </>
    );
  }
  return (
    <>
      <Tools drawn={drawn} fixed={fixed} />
      <Picture {...drawn} />
      <Sums ready={ready} rows={rows.matches} />
      <Grid {...drawn} />
    </>
  );
}

/** The curves of the trace, and below them those of the trace that it is compared with, on the same scale. */
function ComparedCurves(drawn: DrawnTable & { picture: PictureOf<"lines"> }) {
  const { entry, table } = drawn, base = comparisonBase.value;
  const { from_ns: _from, to_ns: _to, ...parameters } = parametersOf(entry); // times of the trace alone
  const place = base && {
    run: base.base_run,
    worker: base.base_worker,
    span: base.base_span,
    ...(base.base_capture && { capture: base.base_capture }),
    version: base.version,
  };
  const shown = useAnswer(entry.id, parameters, place ?? NOWHERE);
  if (!place) return <Curves {...drawn} />;
  return (
    <>
      <p class="basis">
        <b>New</b> {Object.values(placeLabels.value).join(" · ")}
      </p>
      <Curves {...drawn} scaledWith={tableOf(shown)} />
      <p class="basis">
        <b>Base</b> {Object.values(baseLabels.value).join(" · ")}
      </p>
      <AnswerView shown={shown} title={`Base: ${entry.title}`}>
        {(other) => <BaseCurves drawn={drawn} other={other} scaledWith={table} />}
      </AnswerView>
    </>
  );
}

function BaseCurves({ drawn, other, scaledWith }: {
  drawn: DrawnTable & { picture: PictureOf<"lines"> };
  other: Table;
  scaledWith: Table;
}) {
  const ready = prepareTable(other, drawn.entry);
  return <Curves {...drawn} table={other} ready={ready} scaledWith={scaledWith} />;
}

/** The rows of a picture as a table. */
const Rows = ({ drawn, fixed }: { drawn: DrawnTable; fixed: string[] }) => (
  <>
    <Tools drawn={drawn} fixed={fixed} />
    <Sums ready={drawn.ready} rows={drawn.rows.matches} />
    <Grid {...drawn} />
  </>
);

/** The same, folded until somebody asks. */
function FoldedRows({ drawn, fixed, of }: { drawn: DrawnTable; fixed: string[]; of: string }) {
  const scope = useTableScope();
  const isOpen = scope.get("rows") !== "";
  return (
    <details
      class="levels"
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => open !== isOpen && scope.go({ rows: open ? "1" : "" })}
    >
      <summary>{plural(drawn.ready.count, "row")} of {of} as a table</summary>
      {isOpen && <Rows drawn={drawn} fixed={fixed} />}
    </details>
  );
}

const NOTHING: Query = {};

/** One view of the trace alone; a note that stands above it isn't repeated. */
function SingleView({ about, place, noted }: { about: Query; place?: TracePlace; noted?: string }) {
  const { entry } = useTableScope();
  const isEarly = entry.scope === "recording" && isFindingViews.value; // the state has the labels of kernels
  const shown = useAdvised(entry.id, useAnswer(entry.id, { ...parametersOf(entry), ...about }, place, isEarly));
  const fixed = Object.keys(about);
  const isBare = shown.answer?.state === "missing" || shown.answer?.state === "failed";
  return (
    <>
      {isBare && (
        <div class="tools">
          <Parameters entry={entry} fixed={fixed} />
        </div>
      )}
      <AnswerView shown={shown} title={entry.place.kind === "part" ? "" : entry.title}>
        {(table) => (
          <>
            {shown.isComparing && (
              <p class="cut">
                <Comparing />
              </p>
            )}
            {table.note && !noted?.includes(table.note) && <p class="cut" role="note">{table.note}</p>}
            {place && !table.data[entry.key[0]!]?.length
              ? <p class="quiet">The memory snapshot has nothing of it.</p>
              : <Content key={entry.id} table={table} entry={entry} fixed={fixed} />}
          </>
        )}
      </AnswerView>
    </>
  );
}

interface Shown {
  entry: ViewEntry;
  /** The row that a detail view explains. */
  about?: Query;
  /** The recording, if it isn't the selected one. */
  place?: TracePlace;
  /** A note that stands above it. */
  noted?: string;
}

/** What the trace lacks, and the memory snapshot next to it has. */
function InSnapshot() {
  const { run, worker, span } = snapshotPlace.value!;
  return (
    <Notice title="The memory snapshot of the same time is a recording of its own">
      <button type="button" onClick={() => openTrace({ run, worker, span })}>
        Open {labelsOf({ run, worker, span }).run}
      </button>
    </Notice>
  );
}

/** One view with its tools, its pictures and its table. */
export function View({ entry, about = NOTHING, place, noted }: Shown) {
  const isCompared = comparisonBase.value !== null && !place && entry.comparable_columns.length > 0;
  if (!place && isInSnapshot(entry.id)) return <InSnapshot />;
  return (
    <Scoped entry={entry}>
      {isCompared ? <ComparedView entry={entry} /> : <SingleView about={about} place={place} noted={noted} />}
    </Scoped>
  );
}

const MOST_FACTS = 7;
const MOST_ROWS = 4;

/** The first columns of a row, side by side. */
function Facts({ ready, entry, row }: { ready: Ready; entry: ViewEntry; row: number }) {
  const isKey = ({ name }: { name: string }) => entry.key.includes(name);
  const known = ready.columns.filter((column) => column.values[row] !== null && !isKey(column)).slice(0, MOST_FACTS);
  return (
    <dl class="strip">
      {[...ready.columns.filter(isKey), ...known].map(({ name, title, doc, kind, values }) => (
        <div key={name}>
          <dt data-tip={doc}>{title}</dt>
          <dd>{typeof values[row] === "number" ? quantity(values[row], kind) : values[row]}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A view above the tabs: a line for each of its first rows, and all of it as a table on request. */
function HeadView({ entry }: { entry: ViewEntry }) {
  const key = `${entry.id}.rows`, isOpen = address.value[key] === "1";
  const table = tableOf(useAnswer(entry.id));
  if (!table) return null;
  const ready = prepareTable(table, entry), rows = [...Array(Math.min(ready.count, MOST_ROWS)).keys()];
  return (
    <section class="card head-view" aria-label={entry.title}>
      {rows.map((row) => <Facts key={row} ready={ready} entry={entry} row={row} />)}
      <button type="button" class="link" aria-expanded={isOpen} onClick={() => go({ [key]: isOpen ? "" : "1" })}>
        {isOpen ? "Hide the table" : "All columns"}
      </button>
      {isOpen && <View entry={entry} />}
    </section>
  );
}

/** What stands above the tabs of an entry. */
export function Heads() {
  const { heads: all, sentence } = openEntry.value!;
  const heads = all.filter(({ id }) => id !== sentence && !(id in missing.value));
  return (
    <>
      {sentence && !(sentence in missing.value) && <Sentence view={sentence} isOwn />}
      {heads.map((head) => <HeadView key={head.id} entry={head} />)}
    </>
  );
}

/** A view with its title, below others. */
export function Part({ entry, noted }: { entry: ViewEntry; noted?: string }) {
  return (
    <section class="part" aria-label={entry.title}>
      <h2 data-tip={entry.doc}>{entry.title}</h2>
      <View entry={entry} noted={noted} />
    </section>
  );
}

/** The note of a view, which says what is doubtful in its numbers, where the page has rows of it. */
function noteOf({ id }: ViewEntry): string | undefined {
  const table = cachedTable(id);
  return table && Object.values(table.data)[0]?.length ? table.note : undefined;
}

const LEVELS = ["loss", "warning", "note", ""];

/** The first sentence of a part's first finding where that is more serious than the tab's: the worst come first. */
function worseFinding(main: ViewEntry, parts: ViewEntry[]): Worse | undefined {
  const [own, ...others] = [main, ...parts].flatMap(({ id, level }) => {
    const data = level && cachedTable(id)?.data;
    return data ? [{ rule: String(data[level]![0] ?? ""), text: String(data.consequence![0] ?? "") }] : [];
  });
  const worse = others.find(({ rule }) => LEVELS.indexOf(rule) < LEVELS.indexOf(own!.rule));
  return worse && { rule: worse.rule, sentence: worse.text.replace(/(?<=\.)\s.*/s, "") };
}

/** The page of a tab: its sentence, the view, and its parts below it; a note that stands above a view isn't repeated. */
export function ViewPage() {
  const [main, ...others] = pageOf(openTab.value!) as [ViewEntry, ...ViewEntry[]];
  const [lead] = [leadOf(main)].filter((view) => view && !(view.id in missing.value));
  // What the sentence above the tabs says isn't repeated as a table of one row.
  const isSaid = (id: string) =>
    id === openEntry.value!.sentence && !comparisonBase.value && !cachedTable(id)?.data.rule?.[1];
  const parts = others.filter(({ id }) => !(id in missing.value) && !isSaid(id));
  const noted = lead && noteOf(lead);
  const above = noted ?? (comparisonBase.value ? "" : noteOf(main));
  return (
    <>
      {lead && <Sentence view={lead.id} isOwn worse={worseFinding(main, parts)} />}
      <PageParameters views={[main, ...parts]} />
      <View key={main.id} entry={main} noted={noted} />
      {parts.map((part) => <Part key={part.id} entry={part} noted={above} />)}
    </>
  );
}
