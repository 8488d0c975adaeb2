/** Where a time and a slice are on the canvas, in CSS pixels. */

import { type Band, type Laid, type Line, lineOf } from "./layout.ts";
import type { Brief } from "./model.ts";
import type { Range } from "./places.ts";

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Geometry {
  width: number;
  height: number;
  range: Range;
  laid: Laid;
  /** How far the lines below the pinned ones are scrolled. */
  scroll: number;
}

export const xOf = ({ width, range }: Pick<Geometry, "width" | "range">, time: number): number =>
  ((time - range.from) / (range.to - range.from)) * width;

export const timeAt = ({ width, range }: Geometry, x: number): number =>
  range.from + (x / width) * (range.to - range.from);

export const nsPerPixel = ({ width, range }: Geometry): number => (range.to - range.from) / Math.max(1, width);

export const isPinned = ({ laid }: Geometry, line: Line): boolean => laid.pinned.includes(line);

/** The top of a line. */
export const topOf = (geometry: Geometry, line: Line): number =>
  isPinned(geometry, line) ? line.y : geometry.laid.pinnedHeight + line.y - geometry.scroll;

/** The lines in sight, first the scrolled ones, then the pinned ones over them. */
export function linesInSight(geometry: Geometry): { line: Line; top: number }[] {
  const { laid, height } = geometry;
  const scrolled = laid.lines.map((line) => ({ line, top: laid.pinnedHeight + line.y - geometry.scroll }))
    .filter(({ line, top }) => top < height && top + line.height > laid.pinnedHeight);
  return [...scrolled, ...laid.pinned.map((line) => ({ line, top: line.y }))];
}

/** The line at a height. */
export function lineAt(geometry: Geometry, y: number): { line: Line; top: number } | undefined {
  const isOnPinned = y < geometry.laid.pinnedHeight;
  return linesInSight(geometry).find(({ line, top }) =>
    isPinned(geometry, line) === isOnPinned && y >= top && y < top + line.height
  );
}

export const rowOf = ({ lanes, rows }: Band, lane: number): number =>
  Math.floor((Math.min(lane, lanes - 1) * rows) / lanes);

/** The box of a slice whose source is shifted so far; null where its track isn't drawn. */
export function boxOf(geometry: Geometry, source: string, shift: number, brief: Brief): Box | null {
  const line = lineOf(geometry.laid, source, brief.track);
  if (!line?.band) return null;
  const top = topOf(geometry, line) + line.band.top + rowOf(line.band, brief.lane) * line.band.rowHeight;
  const left = xOf(geometry, brief.start_ns + shift);
  const right = Math.max(left + 1, xOf(geometry, brief.start_ns + brief.dur_ns + shift));
  return { left, right, top, bottom: top + Math.max(1, line.band.rowHeight - (line.band.isMini ? 0 : 1)) };
}
