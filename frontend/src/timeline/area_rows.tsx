/** The rows of an area, or of two, as a table that sorts, filters and leads to slices. */

import type { Table, ViewEntry } from "../api.ts";
import type { Ready } from "../columns.ts";
import { RowDetail } from "../widgets/row_detail.tsx";
import { useRows } from "../widgets/rows.ts";
import { SaveRows } from "../widgets/save.tsx";
import { DataTable } from "../widgets/table.tsx";
import { FilterBox, Sums } from "../widgets/tools.tsx";
import { STEPS } from "./compared_areas.ts";
import type { Find } from "./model.ts";
import { setFind } from "./state.ts";

/** The table as if it were a view, so that what draws views draws it. */
export const entryOf = (id: string, weight: string | null): ViewEntry => ({
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
  weight,
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
  const name = data.name?.[row] ?? null, category = data.category?.[row] ?? null;
  const wish: Find = name === STEPS ? { text: name, category } : { name, category };
  return (
    <p>
      <button type="button" onClick={() => setFind(wish)}>Show its slices in the timeline</button>
    </p>
  );
}

export function AreaRows({ table, ready, entry }: { table: Table; ready: Ready; entry: ViewEntry }) {
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
