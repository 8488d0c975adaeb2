/** The part of the page and of the address that belongs to one table; a page may have several tables. */

import { type ComponentChildren, createContext, h, type RefObject } from "preact";
import { useContext, useMemo, useRef } from "preact/hooks";
import type { ViewEntry } from "../api/types.ts";
import type { Address } from "../app/host.ts";
import { address, go, openTab } from "../app/router.ts";

export interface TableScope {
  /** The view that is drawn. */
  entry: ViewEntry;
  /** The element around all of it. */
  box: RefObject<HTMLElement | null>;
  get: (key: string) => string;
  go: (changes: Address, how?: "push" | "replace") => void;
}

export const TableScopeContext = createContext<TableScope | null>(null);

export const useTableScope = (): TableScope => useContext(TableScopeContext)!;

/** The scope of a view: its keys stand in the address as they are if it is the open tab, else after its id. */
function useTableScopeOf(entry: ViewEntry): TableScope {
  const box = useRef<HTMLElement>(null);
  const prefix = entry.id === openTab.value?.id ? "" : `${entry.id}.`;
  return useMemo(() => ({
    entry,
    box,
    get: (key) => address.value[prefix + key] ?? "",
    go: (changes, how) =>
      go(Object.fromEntries(Object.entries(changes).map(([key, value]) => [prefix + key, value])), how),
  }), [entry, prefix]);
}

interface ScopedProps {
  entry: ViewEntry;
  label?: string;
  class?: string;
  children: ComponentChildren;
}

/** The part of the page for a view. */
export function Scoped({ entry, label, class: name = "view", children }: ScopedProps) {
  const scope = useTableScopeOf(entry);
  return (
    <TableScopeContext.Provider value={scope}>
      <section ref={scope.box} class={name} aria-label={label}>{children}</section>
    </TableScopeContext.Provider>
  );
}
