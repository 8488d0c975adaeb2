/** The runs of a job over time: since when a step takes longer, and a row per run. */

import { Fragment, h } from "preact";
import { unbroken } from "../format/numbers.ts";
import { useMemo } from "preact/hooks";
import type { History, Table, ViewEntry } from "../api/types.ts";
import { type ShownAnswer, useShown } from "../app/answers.ts";
import { compareWith } from "../app/comparison_base.ts";
import { useResource } from "../app/resource.ts";
import {
  address,
  entries,
  firstTab,
  HISTORY,
  listing,
  openTrace,
  openView,
  placeIn,
  STEP_DIFFERENCE,
} from "../app/router.ts";
import { RunChart } from "../charts/run_chart.tsx";
import { prepareTable } from "../table/columns.ts";
import { RowDetail } from "../table/row_detail.tsx";
import { useRows } from "../table/rows.ts";
import { SaveRows } from "../table/save.tsx";
import { DataTable } from "../table/table.tsx";
import { Scoped, useTableScope } from "../table/table_scope.tsx";
import { Columns, FilterBox, Sums } from "../table/tools.tsx";
import { LinkTo } from "../ui/link.tsx";
import { AnswerView } from "../ui/status.tsx";

const entryOf = ({ columns }: Table): ViewEntry => ({ ...HISTORY, columns, key: ["run"] });

/** Opens the first page of a run. */
function openRun(run: string) {
  openTrace(placeIn(run));
  openView(firstTab(entries.value[0]!));
}

/** Opens a run next to the one that ran before it, of those that are compared. */
function compareRuns(run: string, before: string) {
  openTrace(placeIn(run));
  compareWith(placeIn(before));
  openView(STEP_DIFFERENCE.id);
}

/** Where a row leads to. */
function Links({ data, row }: { data: Table["data"]; row: number }) {
  const isCompared = (at: number) => data.not_compared![at] === null;
  let before = row - 1;
  while (before >= 0 && !isCompared(before)) before--;
  const [run, other] = [row, before].map((at) => String(data.run![at]));
  return (
    <p class="buttons">
      <LinkTo open={() => openRun(run!)}>Open this run</LinkTo>
      {isCompared(row) && before >= 0 && <LinkTo open={() => compareRuns(run!, other!)}>Compare with {other}</LinkTo>}
    </p>
  );
}

/** The newest change, or that there is none; below it what the answer rests on. */
function Answers({ answers: [first, ...others] }: History) {
  return (
    <section class="verdict" aria-label="History" style={{ borderColor: "var(--accent)" }}>
      <div>
        <p class="sentence">{unbroken(first ?? "")}</p>
        {others.map((text) => <p key={text}>{unbroken(text)}</p>)}
      </div>
    </section>
  );
}

function Content({ table }: { table: History }) {
  const scope = useTableScope();
  const entry = useMemo(() => entryOf(table), [table]);
  const ready = prepareTable(table, entry), rows = useRows(ready, entry);
  return (
    <>
      <Answers {...table} />
      <RunChart table={table} open={(row) => scope.go({ row: String(row), open: "1" }, "push")} />
      <div class="tools">
        <FilterBox problem={rows.problem} />
        <span class="space" />
        <Columns ready={ready} />
        <SaveRows table={table} rows={rows.rows} />
      </div>
      <Sums ready={ready} rows={rows.matches} />
      <DataTable
        ready={ready}
        rows={rows}
        label="Runs"
        detail={(row, inSight) => (
          <RowDetail {...{ ready, table, row, inSight }}>
            <Links data={table.data} row={row} />
          </RowDetail>
        )}
      />
    </>
  );
}

/** The page; it asks again when runs come or go. */
export function HistoryPage() {
  const { run = "" } = address.value, { runs = [] } = listing.value ?? {};
  const version = runs.map(({ name }) => name).join("\n");
  const answer = useResource<History>(run ? { route: "history", query: { run }, version } : null);
  const shown = useShown(answer as ShownAnswer<History>["answer"]);
  return (
    <Scoped entry={HISTORY}>
      <AnswerView shown={shown as ShownAnswer} title={HISTORY.title}>
        {(table) => <Content table={table as History} />}
      </AnswerView>
    </Scoped>
  );
}
