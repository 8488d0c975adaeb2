/** What of a table the address asks for: the rows that the filter lets through, in the order of the headings. */

import type { ViewEntry } from "../api.ts";
import type { DrawnColumn, Ready } from "../columns.ts";
import { filtered, nextSort, parseFilter, parseSort, printSort, sorted, type SortKey } from "../order.ts";
import { useMemo } from "preact/hooks";
import { address, go } from "../state.ts";

export interface Rows {
  rows: Uint32Array;
  keys: SortKey[];
  problem: string;
}

/** Largest weight first, unless the user wants another order; a table without a weight stays as it came. */
export function useRows(ready: Ready, entry: ViewEntry): Rows {
  const { filter: text = "", sort = entry.weight ? `-${entry.weight}` : "" } = address.value;
  const filter = useMemo(() => parseFilter(text), [text]);
  const kept = useMemo(() => filtered(filter, ready.texts, ready.lower), [filter, ready]);
  return useMemo(() => {
    const keys = parseSort(sort, Object.fromEntries(ready.columns.map(({ name, values }) => [name, values])));
    const ranked = keys.map(({ name, descending }) => ({ rank: ready.rank(name), descending }));
    return { rows: sorted(kept, ranked), keys, problem: filter.problem };
  }, [kept, sort, ready]);
}

export function sortBy(keys: SortKey[], { name, isNumeric, kind }: DrawnColumn, second: boolean) {
  go({ sort: printSort(nextSort(keys, name, isNumeric || kind === "bool", second)) });
}
