/** The rows of a table that match the address's filter, in its order. */

import type { Table, ViewEntry } from "../api/types.ts";
import { type DrawnColumn, isText, type Ready } from "./columns.ts";
import { findRows, nextSort, parseSort, printSort, type Rows, type SortKey } from "./order.ts";
import { finish, workInSlices } from "./time_slices.ts";
import { chartedColumns } from "../api/pictures.ts";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { type TableScope, useTableScope } from "./table_scope.tsx";

/** A view's answer as widgets draw it. */
export interface DrawnTable {
  entry: ViewEntry;
  table: Table;
  ready: Ready;
  rows: Rows;
}

/**
 * The order of the server's rows: by the weight or another charted column if that descends, else none.
 *
 * Below a heat map, which has lines and columns in order, the rows with the largest values come first.
 */
function defaultSortOf(ready: Ready, entry: ViewEntry): string {
  const descends = ({ values }: DrawnColumn) =>
    values[0] !== values.at(-1) && values.every((value, i) => i === 0 || (value ?? 0) <= (values[i - 1] ?? 0));
  const by = [entry.weight, ...chartedColumns(entry.picture)].map((name) =>
    ready.columns.find((column) => column.name === name)
  );
  const column = by.find((column) => column && (entry.picture?.kind === "heatmap" || descends(column)));
  return column ? `-${column.name}` : "";
}

const MANY = 5000; // rows that take longer than anybody should wait

/**
 * The rows to show, in their default order unless the user chose another.
 *
 * After the first ones, those of a long table are found in time slices: the rows before stay meanwhile, and a newer
 * request drops the work.
 */
export function useRows(ready: Ready, entry: ViewEntry): Rows {
  const defaultSort = useMemo(() => defaultSortOf(ready, entry), [ready, entry]);
  const scope = useTableScope();
  const text = scope.get("filter"), sort = scope.get("sort") || defaultSort, request = `${sort}\n${text}`;
  const isLong = ready.count > MANY;
  const atOnce = useMemo(() => ({ request, rows: finish(findRows(ready, text, sort)) }), [ready, isLong || request]);
  const [later, setLater] = useState<{ ready: Ready; rows: Rows } | null>(null);
  useLayoutEffect(() => {
    if (request === atOnce.request) return setLater(null);
    return workInSlices(findRows(ready, text, sort), (rows) => setLater({ ready, rows }));
  }, [ready, request]);
  useEffect(() => {
    if (!isLong) return;
    const columns = ready.columns.toSorted((a, b) => +isText(a) - +isText(b)); // numbers take a tenth of the time
    return ready.ranks.computeAhead(columns.map(({ name }) => name));
  }, [ready.ranks]);
  return later?.ready === ready ? later.rows : atOnce.rows;
}

/** Sorts by a column, or turns its order around; the rows in the order that the address has may not be found yet. */
export function sortBy(scope: TableScope, shown: SortKey[], { name, isNumeric, kind }: DrawnColumn, second: boolean) {
  const sort = scope.get("sort"), keys = sort ? parseSort(sort) : shown;
  scope.go({ sort: printSort(nextSort(keys, name, isNumeric || kind === "bool", second)) });
}
