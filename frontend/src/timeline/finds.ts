/** What is looked for, in words. */

import { label } from "../format.ts";
import type { Find } from "./model.ts";

/** The exact values that slices must have, each with what it is: "Name", "aten::mm". */
export const exactParts = ({ text: _, ...exact }: Find): [name: string, value: string][] =>
  Object.entries(exact).map(([name, value]) => [label(name), Array.isArray(value) ? value.join(", ") : String(value)]);

/** "Name aten::mm, category Operator", or the words. */
export function findWords(find: Find): string {
  const parts = exactParts(find).map(([name, value]) => `${name.toLowerCase()} ${value}`);
  return [...(find.text ? [`“${find.text}”`] : []), ...parts].join(", ");
}
