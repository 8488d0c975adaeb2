/** Where a table's columns lie, and how high its rows are, in pixels. */

import { type DrawnColumn, isProse, isText, sentencesOf, widest } from "./columns.ts";
import { heightOf, linesOf } from "./row_layout.ts";
import { textWidth } from "../ui/measure.ts";

export const HEAD = 45;
const PADDING = 34;
const BAR = 44; // next to the number
export const SWATCH = 16; // before the text
const LEAST_PROSE = 200;
const LEAST_NAME = 120; // where sentences take its room
const FADE = 22; // of what goes on to the right, over columns behind sentences
const WIDEST_PROSE = 900; // where one has to scroll to see it
/** A good width of sentences that would be so wide on one line: the longer, the wider, and the more lines. */
const goodProseWidth = (width: number) => Math.max(160, 7.5 * Math.sqrt(width));

/** Pixels by which a row's name stands further in; deep ones less, so that stacks stay readable. */
export const indent = (level: number) => 18 + 14 * Math.min(level, 8) + 4 * Math.max(0, level - 8);

/** The least width in which a heading, which is bold when sorted by, takes two lines. */
function headingWidth({ title, scale }: DrawnColumn): number {
  const words = `${title} ${scale.unit}`.trim().split(" ");
  const splits = words.map((_, i) => [words.slice(0, i + 1).join(" "), words.slice(i + 1).join(" ")]);
  return Math.min(...splits.map((lines) => Math.max(...lines.map((line) => textWidth(line, 12, 650)))));
}

/**
 * Pixels of each column: enough for its longest number. Cut texts share the remaining width, the first column first;
 * columns of sentences share it by the square root of their length.
 */
export function widths(columns: DrawnColumn[], available: number, indented: number): number[] {
  const main = columns.findIndex(isText);
  const natural = columns.map((column, i) => {
    const needed = Math.max(headingWidth(column), textWidth(widest(column)));
    return Math.ceil(
      needed + PADDING + (column.bar ? BAR : 0) + (column.swatch ? SWATCH : 0) + (i === main ? indented : 0),
    );
  });
  const whole = 0.45 * available; // of a narrow table, so that the numbers next to the name stay visible
  const leastName = LEAST_NAME + (indented && indented - indent(0)); // the deepest one is readable, too
  const most = (i: number): number => {
    const column = columns[i]!;
    if (!isText(column)) return Infinity;
    if (isProse(column)) return goodProseWidth(natural[i]!);
    return i === main ? Math.min(Math.max(140, whole, leastName), 380 + indented) : Math.min(Math.max(140, whole), 240);
  };
  const result = natural.map((width, i) => Math.min(width, most(i)));
  const roomAfter = (count: number) => available - result.slice(0, count).reduce((sum, width) => sum + width, 0);
  let left = roomAfter(columns.length);
  if (left < 0 && columns.some(isProse)) {
    columns.forEach((column, i) => isProse(column) && (result[i] = Math.min(natural[i]!, LEAST_PROSE)));
    const short = LEAST_PROSE - roomAfter(columns.findIndex(isProse)); // the name gives way to the first sentence
    if (short > 0 && main >= 0 && result[main]! - short >= leastName) result[main]! -= short;
    const last = columns.findLastIndex(isProse); // numbers that gave way to it are out of sight
    if (last < columns.length - 1) {
      result[last] = Math.max(LEAST_PROSE, Math.min(natural[last]!, roomAfter(last) - FADE));
    }
    // What is out of sight anyway takes few lines.
    columns.forEach((column, i) => {
      if (isProse(column) && roomAfter(i) < LEAST_PROSE) result[i] = Math.min(natural[i]!, WIDEST_PROSE);
    });
    left = roomAfter(columns.length);
  }
  const deficits = result.map((width, i) => (isProse(columns[i]!) ? Math.sqrt(natural[i]! - width) : 0));
  const totalDeficit = deficits.reduce((sum, deficit) => sum + deficit, 0);
  const room = Math.max(0, left);
  for (const [i, deficit] of deficits.entries()) {
    if (deficit === 0) continue;
    const more = Math.min(deficit ** 2, room * deficit / totalDeficit);
    result[i]! += more;
    left -= more;
  }
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

/** Whether a column ends within the width that there is, or there is no such column. */
export const isInSight = (columns: DrawnColumn[], name: string | null, available: number): boolean =>
  widths(columns, available, 0).slice(0, columns.findIndex((column) => column.name === name) + 1)
    .reduce((room, width) => room - width, available) >= 0;

/** The columns with all sentences in one, below each other, if there is no room for them in a row. */
function withSentencesStacked(columns: DrawnColumn[], available: number): DrawnColumn[] {
  const [first, ...below] = columns.filter(isProse);
  if (!first || !below.length) return columns;
  const pixels = widths(columns, available, 0);
  const needed = columns.map((column, i) =>
    isProse(column) ? Math.min(LEAST_PROSE, textWidth(widest(column)) + PADDING) : pixels[i]!
  );
  if (needed.reduce((sum, width) => sum + width, 0) <= available) return columns;
  const title = [first, ...below].map(({ title }) => title).join(", ");
  return columns.filter((column) => !below.includes(column))
    .map((column) => (column === first ? { ...column, title, below } : column));
}

/**
 * The columns with the sentences in sight: where there is no room, these stand below each other, and numbers behind
 * them, the last ones first, but not the weight; behind several sentences short texts, too.
 */
export function sentencesInSight(all: DrawnColumn[], available: number, weight: string | null): DrawnColumn[] {
  const columns = withSentencesStacked(all, available);
  const before = columns.slice(0, Math.max(0, columns.findIndex(isProse)));
  if (!before.length) return columns;
  const pixels = widths(columns, available, 0);
  const isStacked = columns.length < all.length;
  let room = available - LEAST_PROSE - before.reduce((sum, _, i) => sum + pixels[i]!, 0);
  const moved = new Set<DrawnColumn>();
  for (let i = before.length - 1; i > 0 && room < 0; i--) {
    const column = before[i]!;
    if ((isText(column) && !isStacked) || column.name === weight) continue;
    moved.add(column);
    room += pixels[i]!;
  }
  return moved.size ? columns.toSorted((a, b) => Number(moved.has(a)) - Number(moved.has(b))) : columns;
}

/** Horizontal padding of a cell in pixels. */
export const INSET = 18;
const CODE = 1.2; // its letters are as wide as the widest

/** How high each row is, by place; null where no column has sentences. */
export function heights(columns: DrawnColumn[], columnWidths: number[], order: Uint32Array): number[] | null {
  const whole = columns.flatMap((
    column,
    at,
  ) => (isProse(column) ? [{ ...column, room: columnWidths[at]! - INSET }] : []));
  if (!whole.length) return null;
  const widthOf = (text: string) => textWidth(text) * (text.includes("`") ? CODE : 1);
  const lines = (row: number) =>
    Math.max(
      ...whole.map(({ room, ...column }) =>
        sentencesOf(column, row).reduce((sum, sentence) => sum + linesOf(sentence, room, widthOf), 0)
      ),
    );
  return Array.from(order, (row) => heightOf(lines(row)));
}
