import type { Table, ViewEntry } from "../api.ts";
import { ready as prepared } from "../columns.ts";
import { plural } from "../format.ts";
import { largest } from "../shapes.ts";
import { Donut, parts } from "../widgets/donut.tsx";
import { useRows } from "../widgets/rows.ts";
import { DataTable } from "../widgets/table.tsx";
import { Export, FilterBox, GroupBy, Parameters, Sums, topCount, TopN } from "../widgets/tools.tsx";
import { Answered, Notice } from "../widgets/waiting.tsx";
import { parametersOf, useAnswer } from "../state.ts";

/** The largest rows of each column that is worth a picture, of the rows that the filter lets through. */
function Charts({ ready, rows, entry }: { ready: ReturnType<typeof prepared>; rows: Uint32Array; entry: ViewEntry }) {
  const charted = ready.columns.filter(({ name }) => entry.charts.includes(name));
  return (
    <div class="charts" role="group" aria-label="Largest rows" tabIndex={0}>
      {charted.map(({ name, title, kind, values }) => {
        const shares = largest(rows, values as (number | null)[], topCount());
        const named = shares.filter(({ row }) => row !== null).length;
        return (
          <Donut
            key={name}
            title={title}
            note={`the largest ${named} of ${plural(rows.length, "row")}`}
            kind={kind}
            parts={parts(shares, ready.nameOf)}
          />
        );
      })}
    </div>
  );
}

function Content({ table, entry }: { table: Table; entry: ViewEntry }) {
  const ready = prepared(table, entry);
  const rows = useRows(ready, entry);
  if (!ready.count) {
    return (
      <Notice title={`${entry.title}: no rows`}>
        <p>{entry.hint}</p>
      </Notice>
    );
  }
  const hasCharts = entry.charts.length > 0;
  return (
    <>
      <div class="tools">
        <FilterBox problem={rows.problem} />
        {rows.problem && <span class="problem" role="alert">No pattern: {rows.problem}</span>}
        <GroupBy drawn={entry} />
        <Parameters entry={entry} />
        {hasCharts && <TopN />}
        <span class="space" />
        <Export table={table} rows={rows.rows} />
      </div>
      {hasCharts && <Charts ready={ready} rows={rows.rows} entry={entry} />}
      <Sums ready={ready} rows={rows.rows} />
      <DataTable ready={ready} table={table} rows={rows} label={entry.title} />
    </>
  );
}

/** Any view of the catalogue: charts of its largest rows, and its table. */
export function Generic({ entry }: { entry: ViewEntry }) {
  const shown = useAnswer(entry.id, parametersOf(entry));
  const isBare = shown.answer?.state === "missing" || shown.answer?.state === "failed";
  return (
    <>
      {isBare && (
        <div class="tools">
          <GroupBy drawn={entry} />
        </div>
      )}
      <Answered shown={shown} title={entry.title}>
        {(table) => <Content key={entry.id} table={table} entry={entry} />}
      </Answered>
    </>
  );
}
