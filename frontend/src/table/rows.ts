/** The rows of a table that match the address's filter, in its order. */

import type { Table, ViewEntry } from "../api/types.ts";
import { type DrawnColumn, isText, type Ready } from "./columns.ts";
import { filterRows, nextSort, parseFilter, parseSort, printSort, type SortKey, sortRows } from "./order.ts";
import { chartedColumns } from "../api/pictures.ts";
import { useEffect, useMemo } from "preact/hooks";
import { type TableScope, useTableScope } from "./table_scope.tsx";

export interface Rows {
  rows: Uint32Array;
  /** The same rows in the table's own order: the same object whatever they are sorted by. */
  matches: Uint32Array;
  keys: SortKey[];
  problem: string;
}

/** A view's answer as widgets draw it. */
export interface DrawnTable {
  entry: ViewEntry;
  table: Table;
  ready: Ready;
  rows: Rows;
}

/** The order of the server's rows: by the weight or another charted column if that descends, else none. */
function defaultSortOf(ready: Ready, entry: ViewEntry): string {
  const descends = ({ values }: DrawnColumn) =>
    values[0] !== values.at(-1) && values.every((value, i) => i === 0 || (value ?? 0) <= (values[i - 1] ?? 0));
  const by = [entry.weight, ...chartedColumns(entry.picture)].map((name) =>
    ready.columns.find((column) => column.name === name)
  );
  const column = by.find((column) => column && descends(column));
  return column ? `-${column.name}` : "";
}

/** The rows to show, in the server's order unless the user chose another. */
export function useRows(ready: Ready, entry: ViewEntry): Rows {
  const defaultSort = useMemo(() => defaultSortOf(ready, entry), [ready, entry]);
  const scope = useTableScope();
  const text = scope.get("filter");
  const sort = scope.get("sort") || defaultSort;
  const filter = useMemo(() => parseFilter(text), [text]);
  const matches = useMemo(() => filterRows(filter, ready.texts, ready.lower), [filter, ready]);
  useEffect(() => {
    const columns = ready.columns.toSorted((a, b) => +isText(a) - +isText(b)); // numbers take a tenth of the time
    return ready.ranks.computeAhead(columns.map(({ name }) => name));
  }, [ready.ranks]);
  return useMemo(() => {
    const keys = parseSort(sort, Object.fromEntries(ready.columns.map(({ name, values }) => [name, values])));
    const ranked = keys.map(({ name, descending }) => ({ rank: ready.ranks.of(name), descending }));
    return { rows: sortRows(matches, ranked), matches, keys, problem: filter.problem };
  }, [matches, sort, ready]);
}

/** Sorts by a column, or turns its order around. */
export function sortBy(scope: TableScope, keys: SortKey[], { name, isNumeric, kind }: DrawnColumn, second: boolean) {
  scope.go({ sort: printSort(nextSort(keys, name, isNumeric || kind === "bool", second)) });
}
