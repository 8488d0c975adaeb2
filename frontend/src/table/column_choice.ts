/** Which columns of a table are hidden, and how wide the user made others; both are in the address. */

import { omitColumns, type Ready } from "./columns.ts";
import type { TableScope } from "./table_scope.tsx";

const LEAST = 40; // pixels

const hiddenIn = (scope: TableScope) => scope.get("hidden").split(",").filter(Boolean);

/** The table without the hidden columns; the first one stays. */
export const shownColumns = (ready: Ready, scope: TableScope): Ready =>
  omitColumns(ready, hiddenIn(scope).filter((name) => name !== ready.columns[0]?.name));

export const isHidden = (scope: TableScope, name: string): boolean => hiddenIn(scope).includes(name);

export function toggleColumn(scope: TableScope, name: string) {
  const hidden = hiddenIn(scope);
  scope.go({ hidden: (hidden.includes(name) ? hidden.filter((one) => one !== name) : [...hidden, name]).join(",") });
}

/** The widths that the user chose, in pixels. */
export const chosenWidths = (text: string): Map<string, number> =>
  new Map(
    text.split(",").filter(Boolean).map((one) => {
      const [name = "", width] = one.split(":");
      return [name, Math.max(LEAST, Number(width) || LEAST)];
    }),
  );

/** Makes a column so wide; null gives it back its own width. */
export function setWidth(scope: TableScope, name: string, width: number | null) {
  const widths = chosenWidths(scope.get("widths"));
  if (width === null) widths.delete(name);
  else widths.set(name, Math.max(LEAST, Math.round(width)));
  scope.go({ widths: [...widths].map(([one, pixels]) => `${one}:${pixels}`).join(",") });
}
