/** Where a table's columns and rows lie, in pixels. */

import { type DrawnColumn, isText, widest } from "../columns.ts";
import { textWidth } from "./measure.ts";

export const ROW = 26;
export const HEAD = 45;
const PADDING = 34;

/** Pixels by which a row's name stands further in; deep ones less, so that stacks stay readable. */
export const indent = (level: number) => 18 + 14 * Math.min(level, 8) + 4 * Math.max(0, level - 8);

/** The least width in which a heading, which is bold when sorted by, takes two lines. */
function headingWidth({ title, scale }: DrawnColumn): number {
  const words = `${title} ${scale.unit}`.trim().split(" ");
  const splits = words.map((_, i) => [words.slice(0, i + 1).join(" "), words.slice(i + 1).join(" ")]);
  return Math.min(...splits.map((lines) => Math.max(...lines.map((line) => textWidth(line, 12, 650)))));
}

/** Pixels of each column: what its longest number needs; texts that are cut get what is left, the first one first. */
export function widths(columns: DrawnColumn[], available: number, indented: number): number[] {
  const main = columns.findIndex(isText);
  const natural = columns.map((column, i) => {
    const needed = Math.max(headingWidth(column), textWidth(widest(column)), column.bar ? 66 : 0);
    return Math.ceil(needed + PADDING + (i === main ? indented : 0));
  });
  const whole = 0.45 * available; // of a narrow table, so that the numbers beside the name stay in sight
  const most = (
    i: number,
  ) => (!isText(columns[i]!) ? Infinity : Math.min(Math.max(140, whole), i === main ? 380 + indented : 240));
  const result = natural.map((width, i) => Math.min(width, most(i)));
  let left = available - result.reduce((sum, width) => sum + width, 0);
  for (const [i, width] of result.entries()) {
    if (!isText(columns[i]!) || left <= 0) continue;
    result[i] = Math.min(natural[i]!, width + left);
    left -= result[i]! - width;
  }
  const widestText = columns.reduce(
    (best, column, i) => isText(column) && !(result[best]! > result[i]!) ? i : best,
    -1,
  );
  if (widestText >= 0 && left > 0) result[widestText]! += left; // the table fills its box
  const each = widestText < 0 && left > 0 ? left / result.length : 0;
  return result.map((width) => width + each);
}

/** Where the rows lie: all of one height, but for the opened one, which has its detail below it. */
export class Layout {
  constructor(readonly count: number, readonly opened: number, readonly detail: number) {}

  top(place: number): number {
    return place * ROW + (this.opened >= 0 && place > this.opened ? this.detail : 0);
  }

  at(y: number): number {
    const place = Math.floor(y / ROW);
    if (this.opened < 0 || place <= this.opened) return place;
    return Math.max(this.opened, Math.floor((y - this.detail) / ROW));
  }
}
