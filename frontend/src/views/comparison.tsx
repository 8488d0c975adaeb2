import { Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import type { Comparison, ViewEntry } from "../api/types.ts";
import { type ShownAnswer, useComparison } from "../app/answers.ts";
import { baseLabels, comparisonBase } from "../app/comparison_base.ts";
import { address, go, openTab, parametersOf, placeLabels } from "../app/router.ts";
import { label, plural } from "../format/numbers.ts";
import { comparedEntry, readyComparison, rowsBeyondNoise } from "../table/comparison_columns.ts";
import { RowDetail } from "../table/row_detail.tsx";
import type { Rows } from "../table/order.ts";
import { useRows } from "../table/rows.ts";
import { SaveRows } from "../table/save.tsx";
import { DataTable } from "../table/table.tsx";
import { useTableScope } from "../table/table_scope.tsx";
import { FilterBox, Sums } from "../table/tools.tsx";
import { Check, Menu } from "../ui/choice.tsx";
import { AnswerView, Notice } from "../ui/status.tsx";
import { Parameters } from "./parameters.tsx";

/** The answer about a view of both traces. */
export function useViewComparison(view: string, question: Record<string, string> = {}): ShownAnswer {
  const { version = "", ...place } = comparisonBase.value ?? {};
  return useComparison(view, { ...place, ...question }, version);
}

/** Which column of the view is compared. */
function ColumnChoice({ entry }: { entry: ViewEntry }) {
  const scope = useTableScope();
  const possible = entry.columns.filter(({ name }) => entry.comparable_columns.includes(name));
  if (possible.length < 2) return null;
  return (
    <Menu
      title="Compare"
      label="Compared column"
      value={scope.get("columns")}
      options={[
        ["", entry.weight ? "default columns" : "all columns"],
        ...possible.map(({ name, doc }) => [name, label(name), doc] as const),
      ]}
      onPick={(columns) => scope.go({ columns, sort: "", row: "", open: "" })}
    />
  );
}

function NoiseSwitch() {
  return (
    <Check
      tip="Hide rows that are equal, or differ no more than the steps among themselves"
      isOn={address.value.noise === "hidden"}
      set={(isOn) => go({ noise: isOn ? "hidden" : "", row: "", open: "" })}
    >
      Hide noise
    </Check>
  );
}

/** The two traces, the basis of the comparison, and what counts as noise. */
function BasisLine({ table }: { table: Comparison }) {
  const { run, worker, span } = placeLabels.value;
  const of = baseLabels.value;
  return (
    <p class="basis" role="note">
      <b>New</b> {run} · {worker} · {span} <b>Base</b> {of.run} · {of.worker} · {of.span}
      <br />
      {table.basis.words}
    </p>
  );
}

function ToolLine({ table, entry, rows }: { table: Comparison; entry: ViewEntry; rows: Rows }) {
  return (
    <div class="tools">
      <FilterBox problem={rows.problem} />
      <Parameters entry={entry} fixed={[]} />
      <ColumnChoice entry={entry} />
      <NoiseSwitch />
      <span class="space" />
      <SaveRows table={table} rows={rows.rows} />
    </div>
  );
}

function Content({ table, entry }: { table: Comparison; entry: ViewEntry }) {
  const drawn = useMemo(() => comparedEntry(entry, table), [entry, table]);
  const ready = readyComparison(table, entry);
  const all = useRows(ready, drawn);
  const isHidden = address.value.noise === "hidden";
  const rows = useMemo(
    () => (isHidden ? { ...all, rows: rowsBeyondNoise(all.rows, table) } : all),
    [all, isHidden, table],
  );
  const left = all.rows.length - rows.rows.length;
  return (
    <>
      <BasisLine table={table} />
      <ToolLine table={table} entry={entry} rows={rows} />
      <Sums ready={ready} rows={rows.matches} />
      {left > 0 && <p class="sums">{plural(left, "row")} hidden: no difference beyond noise</p>}
      {rows.rows.length
        ? (
          <DataTable
            ready={ready}
            rows={rows}
            label={`${entry.title} compared`}
            detail={(row, inSight) => <RowDetail {...{ ready, table, row, inSight }} />}
          />
        )
        : (
          <Notice title={ready.count ? "No row differs by more than noise" : `${entry.title}: no rows in either trace`}>
            <p>{left ? "Clear “Hide noise” to see them." : entry.hint}</p>
          </Notice>
        )}
    </>
  );
}

/** A view of the shown trace compared with the base. */
export function ComparedView({ entry }: { entry: ViewEntry }) {
  const scope = useTableScope();
  const columns = scope.get("columns");
  const shown = useViewComparison(entry.id, { ...parametersOf(entry), ...(columns ? { columns } : {}) });
  const isPart = scope.entry.id !== openTab.value?.id;
  if (isPart && shown.answer?.state === "failed") { // the page's first view shows the failure
    return <p class="quiet">Can't be compared. {shown.answer.message}</p>;
  }
  return (
    <AnswerView shown={shown} title={entry.title}>
      {(table) => <Content key={entry.id} table={table as Comparison} entry={entry} />}
    </AnswerView>
  );
}
