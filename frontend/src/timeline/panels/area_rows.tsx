/** The rows of an area, or of two, as a table that sorts, filters and leads to slices. */

import { type ComponentChildren, Fragment, h } from "preact";
import type { Find } from "../../api/timeline_types.ts";
import type { Picture, Table, ViewEntry } from "../../api/types.ts";
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
export const entryOf = (id: string, weight: string | null, picture: Picture | null = null): ViewEntry => ({
  ...pageView(id, { title: "Area", question: "", section: "", figure: null }, ""),
  key: ["name", "category", "process"],
  weight,
  picture,
});

/** Of annotations only those of one side: threads, or their spans on streams. */
export const onSide = (find: Find, isDevice: boolean): Find =>
  find.category === "Annotation" ? { ...find, side: isDevice ? "device" : "host" } : find;

/** The slices of a name, wherever they are in the recording. */
export const findName = ({ data }: Table, row: number): Find => {
  const name = data.name?.[row] ?? null, category = data.category?.[row] ?? null;
  return name === STEPS ? { text: name, category } : { name, category };
};

/** The rows below tools that `children` begin; `findRow` says what finds the slices of one. */
export function AreaRows({ table, ready, entry, findRow, children }: {
  table: Table;
  ready: Ready;
  entry: ViewEntry;
  findRow: (table: Table, row: number) => Find | null;
  children?: ComponentChildren;
}) {
  const rows = useRows(ready, entry);
  const detail = (row: number, inSight: DrawnColumn[]) => {
    const find = findRow(table, row);
    return (
      <RowDetail {...{ ready, table, row, inSight }}>
        {find && (
          <p>
            <button type="button" onClick={() => setFind(find)}>Show its slices in the timeline</button>
          </p>
        )}
      </RowDetail>
    );
  };
  return (
    <>
      <div class="tools">
        {children}
        <FilterBox problem={rows.problem} />
        <Sums ready={ready} rows={rows.matches} />
        <span class="space" />
        <SaveRows table={table} rows={rows.rows} />
      </div>
      <DataTable ready={ready} rows={rows} detail={detail} label={entry.title} />
    </>
  );
}
