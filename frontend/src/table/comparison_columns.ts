/** A comparison prepared for drawing: signs and colors of differences, one scale for base and new. */

import type { Comparison, ViewEntry } from "../api/types.ts";
import { addKernelLabels } from "../format/readable_names.ts";
import { type DrawnColumn, prepareTable, type Ready } from "./columns.ts";
import { chartedColumns } from "../api/pictures.ts";
import { cell, decimal, label, type Scale, scaleFor, type Value } from "../format/numbers.ts";
import { uncapitalized } from "../format/steps.ts";

const MISSING = "–";

/** The number with its sign, also where it is a plus. */
export function formatSigned(value: Value | undefined, scale: Scale): string {
  if (typeof value !== "number") return MISSING;
  if (value > 0) return formatSigned(-value, scale).replace("−", "+"); // a tiny change is "≈0" in both directions
  return cell(value, "duration", scale);
}

const MANIFOLD = 10; // a larger ratio is no percentage

/** A ratio as growth: 1.05 is "+5.0 %", 12 is "×12.0". */
export function formatGrowth(ratio: Value | undefined): string {
  if (typeof ratio !== "number") return MISSING;
  const digits = (value: number) => decimal(value, Math.abs(value) < 99.95 ? 1 : 0);
  if (ratio >= MANIFOLD) return `×${digits(ratio)}`;
  const percent = 100 * (ratio - 1);
  return `${percent > 0 ? "+" : ""}${digits(Math.abs(percent) < 0.05 ? 0 : percent)} %`;
}

const DIRECTIONS: Record<string, string> = { unknown: "unsure", "not certain": "noise", same: "noise" };

/** The color of a difference: by direction for amounts, pale if it may be noise. A change of a share is neither good nor bad. */
function toneOf(delta: Value[], verdict: Value[], isAmount: boolean) {
  return (row: number): string => {
    const value = delta[row];
    const direction = isAmount ? (Number(value) > 0 ? "grew" : "shrank") : "changed";
    const tone = typeof value !== "number" || value === 0 ? "" : direction;
    return `${tone} ${DIRECTIONS[String(verdict[row])] ?? "real"}`.trim();
  };
}

/** The compared view as an entry of the catalogue, so that whatever draws a view draws it. */
export function comparedEntry(entry: ViewEntry, { columns, key, weight }: Comparison): ViewEntry {
  return { ...entry, picture: null, columns, key, weight };
}

function titleOf(name: string, compared: string[], first: string): string {
  if (name === "only_in") return "Only in";
  const column = compared.find((one) => name.endsWith(`_${one}`) || name.startsWith(`${one}_`));
  if (!column) return label(name);
  const what = uncapitalized(label(column));
  if (name === `base_${column}`) return `Base ${what}`;
  if (name === `new_${column}`) return `New ${what}`;
  if (name === `delta_${column}`) return `Δ ${what}`;
  if (name === `noise_${column}`) return `± noise`;
  const of = column === first ? "" : ` of ${what}`;
  return (name === `${column}_ratio` ? "Change" : "Verdict") + of;
}

function longestFirst(names: string[]): string[] {
  return [...names].sort((a, b) => b.length - a.length);
}

function decorate(ready: Ready, table: Comparison, { picture, columns: own }: ViewEntry): Ready {
  const parts = chartedColumns(picture);
  const isCount = (name: string) => own.some((one) => one.name === name && one.kind === "count");
  const { data } = table;
  const compared = longestFirst(table.compared);
  const shown = ready.columns.filter(({ name, shown_as }) => name !== table.parent && shown_as !== "hash");
  const columns = shown.map((column): DrawnColumn => {
    const one = { ...column, bar: null, title: titleOf(column.name, compared, table.compared[0]!), isSummed: false };
    const of = compared.find((name) => column.name.endsWith(`_${name}`) || column.name.startsWith(`${name}_`));
    if (!of || !data[`delta_${of}`]) return one;
    const [delta, verdict] = [data[`delta_${of}`]!, data[`${of}_verdict`]!];
    const tone = toneOf(delta, verdict, of.endsWith("_ns") || of.endsWith("_bytes") || isCount(of));
    if (column.name === `${of}_ratio`) return { ...one, shown: (row) => formatGrowth(data[`${of}_ratio`]![row]), tone };
    if (column.name === `${of}_verdict`) {
      const shown = (row: number) => String(verdict[row] ?? MISSING);
      return { ...one, shown, tone: (row) => tone(row).replace(/grew|shrank|changed/, "") };
    }
    const scale = scaleFor(column.kind, [...data[`base_${of}`]!, ...data[`new_${of}`]!]);
    const isSummed = parts.includes(of) && !column.name.startsWith("noise_");
    if (!column.name.startsWith("delta_")) return { ...one, scale, isSummed };
    return { ...one, scale, isSummed, shown: (row) => formatSigned(delta[row], scale), tone };
  });
  return { ...ready, columns };
}

const cache = new WeakMap<Comparison, Ready>();

/** The comparison of a view prepared for drawing, with sums of additive columns; made once per answer. */
export function readyComparison(table: Comparison, view: ViewEntry): Ready {
  addKernelLabels(table.labels);
  const ready = cache.get(table) ?? decorate(prepareTable(table, comparedEntry(view, table)), table, view);
  cache.set(table, ready);
  return ready;
}

/** The rows whose first compared column differs by more than noise. */
export function rowsBeyondNoise(rows: Uint32Array, { data, compared }: Comparison): Uint32Array {
  const verdict = data[`${compared[0]}_verdict`] ?? [];
  return rows.filter((row) => verdict[row] !== "not certain" && verdict[row] !== "same");
}
