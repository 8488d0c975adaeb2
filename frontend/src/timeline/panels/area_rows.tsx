/** The rows of an area, or of two, as a table that sorts, filters and leads to slices. */

import type { Find } from "../../api/timeline_types.ts";
import type { Table, ViewEntry } from "../../api/types.ts";
import type { DrawnColumn, Ready } from "../../table/columns.ts";
import { pageView } from "../../api/pictures.ts";
import { RowDetail } from "../../table/row_detail.tsx";
import { useRows } from "../../table/rows.ts";
import { SaveRows } from "../../table/save.tsx";
import { DataTable } from "../../table/table.tsx";
import { FilterBox, Sums } from "../../table/tools.tsx";
import { STEPS } from "../model/area_comparison.ts";
import { setFind } from "../state/selection.ts";

/** The table as if it were a view, so that what draws views draws it. */
export const entryOf = (id: string, weight: string | null): ViewEntry => ({
  ...pageView(id, { title: "Area", question: "", section: "", figure: null }, ""),
  key: ["name", "category"],
  weight,
});

/** A row's slices, wherever they are in the recording. */
function FindRow({ table: { data }, row }: { table: Table; row: number }) {
  const name = data.name?.[row] ?? null, category = data.category?.[row] ?? null;
  const find: Find = name === STEPS ? { text: name, category } : { name, category };
  return (
    <p>
      <button type="button" onClick={() => setFind(find)}>Show its slices in the timeline</button>
    </p>
  );
}

export function AreaRows({ table, ready, entry }: { table: Table; ready: Ready; entry: ViewEntry }) {
  const rows = useRows(ready, entry);
  const detail = (row: number, inSight: DrawnColumn[]) => (
    <RowDetail {...{ ready, table, row, inSight }}>
      <FindRow table={table} row={row} />
    </RowDetail>
  );
  return (
    <>
      <div class="tools">
        <FilterBox problem={rows.problem} />
        {rows.problem && <span class="problem" role="alert">Invalid pattern: {rows.problem}</span>}
        <Sums ready={ready} rows={rows.rows} />
        <span class="space" />
        <SaveRows table={table} rows={rows.rows} />
      </div>
      <DataTable ready={ready} rows={rows} detail={detail} label={entry.title} />
    </>
  );
}
