/** The comparison of two areas, by name. */

import type { Column, Table, ViewEntry } from "../../api/types.ts";
import { type DrawnColumn, prepareTable, type Ready } from "../../table/columns.ts";
import { formatSigned } from "../../table/comparison_columns.ts";
import { label, scaleFor, type Value } from "../../format/numbers.ts";
import { uncapitalized } from "../../format/steps.ts";

const COMPARED = ["self_ns", "total_ns", "calls"] as const;
type Compared = typeof COMPARED[number];

/** The name shared by all steps here: their names differ only in the step number. */
export const STEPS = "ProfilerStep#";

const nameOf = (name: Value): Value => typeof name === "string" && /^ProfilerStep#\d+$/.test(name) ? STEPS : name;

interface Row {
  name: Value;
  category: Value;
  base: Record<Compared, number>;
  area: Record<Compared, number>;
}

const none = (): Record<Compared, number> => ({ self_ns: 0, total_ns: 0, calls: 0 });

const change = ({ base, area }: Row, name: Compared): number => area[name] - base[name];

/** The sums of each name and category over the tables of both sides; where nothing of a name ran, that took 0 ns. */
function rowsOf(base: Pick<Table, "data">[], area: Pick<Table, "data">[]): Row[] {
  const rows = new Map<string, Row>();
  for (const [side, tables] of [["base", base], ["area", area]] as const) {
    for (const { data } of tables) {
      data.name?.forEach((recordedName, i) => {
        const name = nameOf(recordedName), category = data.category?.[i] ?? null;
        const key = JSON.stringify([name, category]);
        const row = rows.get(key) ?? { name, category, base: none(), area: none() };
        for (const column of COMPARED) row[side][column] += Number(data[column]?.[i] ?? 0);
        rows.set(key, row);
      });
    }
  }
  return [...rows.values()];
}

const DOCS: Record<Compared, string> = {
  self_ns: "Duration without the slices nested directly inside them on the same track; self times add up.",
  total_ns: "Sum of their durations.",
  calls: "Number of slices that overlap it.",
};

const columnsOf = (name: Compared): Column[] => {
  const kind = name === "calls" ? "count" : "duration";
  return [
    { name: `delta_${name}`, kind, doc: `Area minus base. ${DOCS[name]}` },
    { name: `base_${name}`, kind, doc: `In the base. ${DOCS[name]}` },
    { name: `area_${name}`, kind, doc: `In the area. ${DOCS[name]}` },
  ];
};

/** What ran in either, by name: the largest difference of self time first, be it more or less. */
export function comparedTable(base: Pick<Table, "data">[], area: Pick<Table, "data">[]): Table {
  const size = (row: Row, name: Compared) => Math.abs(change(row, name));
  const rows = rowsOf(base, area).sort((a, b) =>
    size(b, "self_ns") - size(a, "self_ns") || size(b, "total_ns") - size(a, "total_ns") ||
    b.area.self_ns - a.area.self_ns || String(a.name).localeCompare(String(b.name))
  );
  const sides = COMPARED.flatMap((name) => [
    [`delta_${name}`, rows.map((row) => change(row, name))],
    [`base_${name}`, rows.map((row) => row.base[name])],
    [`area_${name}`, rows.map((row) => row.area[name])],
  ]);
  const texts: Column[] = [
    { name: "name", kind: "text", doc: "Name of the slices; steps have one for all, without their numbers." },
    { name: "category", kind: "text", doc: "What they are: Kernel, Operator and so on." },
  ];
  const data = { name: rows.map(({ name }) => name), category: rows.map(({ category }) => category) };
  return {
    state: "ready",
    view: "compared_areas",
    columns: [...texts, ...COMPARED.flatMap(columnsOf)],
    data: { ...data, ...Object.fromEntries(sides) },
  };
}

/** The table ready for drawing: both sides in one scale, differences in their own with their signs, self times summed. */
export function readyAreas(table: Table, entry: ViewEntry): Ready {
  const plain = prepareTable(table, entry);
  const columns = plain.columns.map((column): DrawnColumn => {
    const name = COMPARED.find((one) => column.name.endsWith(`_${one}`));
    if (!name) return column;
    const scale = scaleFor(column.kind, [...table.data[`base_${name}`]!, ...table.data[`area_${name}`]!]);
    const one = { ...column, scale, bar: null, isSummed: name === "self_ns" };
    if (!column.name.startsWith("delta_")) return one;
    const { values } = column, own = scaleFor(column.kind, values);
    const tone = (row: number) => values[row] ? `${Number(values[row]) > 0 ? "grew" : "shrank"} unsure` : "";
    const title = `Δ ${uncapitalized(label(name))}`;
    return { ...one, title, scale: own, shown: (row) => formatSigned(values[row], own), tone };
  });
  return { ...plain, columns };
}
