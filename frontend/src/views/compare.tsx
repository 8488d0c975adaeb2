import { useMemo } from "preact/hooks";
import type { Comparison, ViewEntry } from "../api.ts";
import { base, baseLabels } from "../base.ts";
import { beyondNoise, comparedEntry, readyComparison } from "../compared.ts";
import { label, plural } from "../format.ts";
import { useSlot } from "../slot.ts";
import { address, go, openEntry, parametersOf, placeLabels, type Shown, useComparison } from "../state.ts";
import { Parameters } from "../widgets/parameters.tsx";
import { RowDetail } from "../widgets/row_detail.tsx";
import { type Rows, useRows } from "../widgets/rows.ts";
import { DataTable } from "../widgets/table.tsx";
import { SaveRows } from "../widgets/save.tsx";
import { FilterBox, GroupBy, Sums } from "../widgets/tools.tsx";
import { Answered, Notice } from "../widgets/waiting.tsx";

const NUMERIC = new Set(["count", "number", "duration", "bytes", "fraction"]);

/** The answer about a view of both traces. */
export function useCompared(view: string, question: Record<string, string> = {}): Shown {
  const { version = "", ...place } = base.value ?? {};
  return useComparison(view, { ...place, ...question }, version);
}

/** Which column of the view is compared. */
function ColumnChoice({ entry }: { entry: ViewEntry }) {
  const slot = useSlot();
  const possible = entry.columns.filter(({ name, kind }) => NUMERIC.has(kind) && !entry.key.includes(name));
  if (possible.length < 2) return null;
  return (
    <label>
      Compare{" "}
      <select
        aria-label="Compared column"
        value={slot.get("columns")}
        onChange={({ currentTarget: { value } }) => slot.go({ columns: value, sort: "", row: "", open: "" })}
      >
        <option value="">{entry.weight ? "the usual" : "everything"}</option>
        {possible.map(({ name, doc }) => <option key={name} value={name} title={doc}>{label(name)}</option>)}
      </select>
    </label>
  );
}

function NoiseSwitch() {
  const isHidden = address.value.noise === "hidden";
  return (
    <label data-tip="Leave out rows that are the same, and those that differ no more than the steps do">
      <input
        type="checkbox"
        checked={isHidden}
        onChange={() => go({ noise: isHidden ? "" : "hidden", row: "", open: "" })}
      />{" "}
      Hide noise
    </label>
  );
}

/** Which two traces, per what, and what counts as noise. */
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
      {rows.problem && <span class="problem" role="alert">No pattern: {rows.problem}</span>}
      <GroupBy />
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
    () => (isHidden ? { ...all, rows: beyondNoise(all.rows, table) } : all),
    [all, isHidden, table],
  );
  const left = all.rows.length - rows.rows.length;
  return (
    <>
      <BasisLine table={table} />
      <ToolLine table={table} entry={entry} rows={rows} />
      <Sums ready={ready} rows={rows.rows} />
      {left > 0 && <p class="sums">{plural(left, "row")} no different, or by no more than noise</p>}
      {rows.rows.length
        ? (
          <DataTable
            ready={ready}
            rows={rows}
            label={`${entry.title} compared`}
            detail={(row) => <RowDetail ready={ready} table={table} row={row}>{null}</RowDetail>}
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

/** A view of the shown trace beside that of the base. */
export function Compared({ entry }: { entry: ViewEntry }) {
  const slot = useSlot();
  const columns = slot.get("columns");
  const shown = useCompared(entry.id, { ...parametersOf(entry), ...(columns ? { columns } : {}) });
  const isPart = slot.base.id !== openEntry.value?.id;
  if (isPart && shown.answer?.state === "failed") { // the page's first view has said it aloud
    return <p class="quiet">Not compared. {shown.answer.message}</p>;
  }
  return (
    <Answered shown={shown} title={entry.title}>
      {(table) => <Content key={entry.id} table={table as Comparison} entry={entry} />}
    </Answered>
  );
}
