/** The part of the page and of the address that belongs to one table; a page may have several tables. */

import { createContext, type RefObject } from "preact";
import { useContext, useMemo, useRef } from "preact/hooks";
import type { ViewEntry } from "../api/types.ts";
import type { Address } from "../app/host.ts";
import { address, go, openEntry, viewsOf } from "../app/router.ts";

export interface TableScope {
  /** The listed view, part or detail whose variant may be drawn here. */
  base: ViewEntry;
  /** The view that is drawn: the base, or a variant of it. */
  entry: ViewEntry;
  /** The element around all of it. */
  box: RefObject<HTMLElement | null>;
  get: (key: string) => string;
  go: (changes: Address, how?: "push" | "replace") => void;
}

export const TableScopeContext = createContext<TableScope | null>(null);

export const useTableScope = (): TableScope => useContext(TableScopeContext)!;

/** The scope of a view: its keys stand in the address as they are if it is the open one, else after its id. */
export function useTableScopeOf(base: ViewEntry): TableScope {
  const box = useRef<HTMLElement>(null);
  const prefix = base.id === openEntry.value?.id ? "" : `${base.id}.`;
  const group = address.value[`${prefix}group`];
  const variant = viewsOf("variant", base.id).find(({ id }) => id === group);
  return useMemo(() => ({
    base,
    entry: variant ?? base,
    box,
    get: (key) => address.value[prefix + key] ?? "",
    go: (changes, how) =>
      go(Object.fromEntries(Object.entries(changes).map(([key, value]) => [prefix + key, value])), how),
  }), [base, variant, prefix]);
}
