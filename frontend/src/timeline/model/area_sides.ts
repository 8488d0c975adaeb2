/** What ran in an area on streams and on threads apart, without the slices that only cover it. */

import type { Table } from "../../api/types.ts";

export const SIDES = ["device", "host"] as const;
export type Side = typeof SIDES[number];

/** The slices that last for the whole area with others inside them. */
export interface Covering {
  /** The outermost first. */
  names: string[];
  count: number;
  /** Their time without what is inside them. */
  own_ns: number;
}

const MARKS = ["is_device", "is_covering"];

function rowsOf({ columns, data, ...table }: Table, rows: number[]): Table {
  const shown = columns.filter(({ name }) => !MARKS.includes(name) && data[name]!.some((value) => value !== null));
  return {
    ...table,
    columns: shown,
    data: Object.fromEntries(shown.map(({ name }) => [name, rows.map((row) => data[name]![row]!)])),
  };
}

/** The rows of an area by side; a side without any slice is left out. */
export function sidesOf(table: Table): Partial<Record<Side, { rows: Table; covering: Covering }>> {
  const { data } = table, of = (column: string, row: number) => Number(data[column]![row]);
  return Object.fromEntries(SIDES.flatMap((side) => {
    const all = [...(data.name ?? []).keys()].filter((row) => data.is_device![row] === (side === "device"));
    const covering = all.filter((row) => data.is_covering![row]).sort((a, b) => of("max_ns", b) - of("max_ns", a));
    const sum = (column: string) => covering.reduce((total, row) => total + of(column, row), 0);
    const around = {
      names: covering.map((row) => String(data.name![row])),
      count: sum("calls"),
      own_ns: sum("self_ns"),
    };
    const rows = rowsOf(table, all.filter((row) => !data.is_covering![row]));
    return all.length ? [[side, { rows, covering: around }]] : [];
  }));
}
