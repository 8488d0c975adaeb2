/** Which columns of a table are hidden, and how wide the user made others; both are in the address. */

import type { DrawnColumn, Ready } from "./columns.ts";
import type { TableScope } from "./table_scope.tsx";

const LEAST = 40; // pixels

/** The names of columns that are hidden, or shown though they are hidden by default. */
const namesIn = (scope: TableScope) => scope.get("columns").split(",").filter(Boolean);

const HIDDEN_AT_FIRST = ["hash", "id", "offset", "bound", "detail"];

/** Whether a column is hidden until it is chosen: it has one value everywhere, hashes, ids, places in the file, bounds, or details. */
const isHiddenByDefault = ({ isConstant, shown_as }: DrawnColumn) =>
  isConstant || (shown_as !== undefined && HIDDEN_AT_FIRST.includes(shown_as));

/** The columns that are hidden; the first one never is. */
export const hiddenColumns = ({ columns }: Ready, scope: TableScope): DrawnColumn[] =>
  columns.filter((column, at) => at && namesIn(scope).includes(column.name) !== isHiddenByDefault(column));

export function toggleColumn(scope: TableScope, name: string) {
  const names = namesIn(scope);
  scope.go({ columns: (names.includes(name) ? names.filter((one) => one !== name) : [...names, name]).join(",") });
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
