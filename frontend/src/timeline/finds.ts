/** What is looked for, in words. */

import { label } from "../format.ts";
import type { Find, SliceFacts } from "./model.ts";

/** The exact values that slices must have, each with what it is: "Name", "aten::mm". */
export const exactParts = ({ text: _, view: _view, ...exact }: Find): [name: string, value: string][] =>
  Object.entries(exact).map(([name, value]) => [label(name), value === null ? "not known" : String(value)]);

/** "Name aten::mm, category Operator", or the words. */
export function findWords(find: Find, titleOf: (view: string) => string): string {
  const parts = exactParts(find).map(([name, value]) => name === "Name" ? value : `${name.toLowerCase()} ${value}`);
  const said = [...(find.text ? [`“${find.text}”`] : []), ...parts].join(", ");
  return find.view ? `the row of ${titleOf(String(find.view))}: ${said}` : said;
}

/** What finds this collective on every rank: its group's how manieth it is, else its like by name. */
export function findOfCollective({ name, category, collective }: SliceFacts): Find {
  const { group, nth } = collective ?? {};
  const isNumbered = typeof nth === "number" && typeof group === "string";
  return isNumbered ? { group, nth, category } : { name, category };
}
