/** Marks of a chart that stand for rows of its table, for pointer and keyboard. */

import { useState } from "preact/hooks";
import { useTableScope } from "../table/table_scope.tsx";
import { slider } from "../ui/slider.ts";

/**
 * The mark that is pointed at, and the properties of the element around all of them: arrow keys go from mark to mark,
 * Enter opens the row in the drawer.
 */
export function useMarks(rows: ArrayLike<number>, label: string, tipOf: (row: number) => string, columns = 1) {
  const scope = useTableScope();
  const [at, mark] = useState(-1);
  const row = rows[at] ?? -1;
  const open = (row = -1) => row < 0 || scope.go({ row: String(row), open: "1" }, "push");
  const onKeyDown = (event: KeyboardEvent) => {
    const { key } = event;
    const by = { ArrowRight: 1, ArrowDown: columns, ArrowLeft: -1, ArrowUp: -columns }[key];
    if (by) {
      // A held key repeats faster than the page is drawn.
      mark((at) => {
        const from = Math.max(0, at), to = at < 0 && columns < 2 ? 0 : from + by;
        return to in rows && Math.abs(to % columns - from % columns) < 2 ? to : at; // not around an end of a line
      });
    } else if (key === "Enter") open(row);
    else if (key === "Escape") scope.go({ open: "" }, "push");
    else return;
    event.preventDefault();
  };
  const name = `${label}; a click, or arrow keys and Enter, opens a row`;
  const around = {
    ...slider(name, rows.length, at, row < 0 ? name : tipOf(row)),
    onKeyDown,
  };
  return { at, row, mark, open, around, opened: Number(scope.get("row") || -1) };
}
