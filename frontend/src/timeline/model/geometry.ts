/** Where a time and a slice are on the canvas, in CSS pixels. */

import type { SliceSummary } from "../../api/timeline_types.ts";
import { type Band, type Line, lineOf, type TrackLayout } from "./layout.ts";
import type { Range } from "./url_codec.ts";

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
  layout: TrackLayout;
  /** How far the lines below the pinned ones are scrolled. */
  scroll: number;
}

export const xOf = ({ width, range }: Pick<Geometry, "width" | "range">, time: number): number =>
  ((time - range.from) / (range.to - range.from)) * width;

export const timeAt = ({ width, range }: Geometry, x: number): number =>
  range.from + (x / width) * (range.to - range.from);

export const nsPerPixel = ({ width, range }: Geometry): number => (range.to - range.from) / Math.max(1, width);

export const isPinned = ({ layout }: Geometry, line: Line): boolean => layout.pinned.includes(line);

/** The top of a line. */
export const topOf = (geometry: Geometry, line: Line): number =>
  isPinned(geometry, line) ? line.y : geometry.layout.pinnedHeight + line.y - geometry.scroll;

/** The visible lines: first the scrolled ones, then the pinned ones over them. */
export function visibleLines(geometry: Geometry): { line: Line; top: number }[] {
  const { layout, height } = geometry;
  const scrolled = layout.lines.map((line) => ({ line, top: layout.pinnedHeight + line.y - geometry.scroll }))
    .filter(({ line, top }) => top < height && top + line.height > layout.pinnedHeight);
  return [...scrolled, ...layout.pinned.map((line) => ({ line, top: line.y }))];
}

/** The line at a height. */
export function lineAt(geometry: Geometry, y: number): { line: Line; top: number } | undefined {
  const isOnPinned = y < geometry.layout.pinnedHeight;
  return visibleLines(geometry).find(({ line, top }) =>
    isPinned(geometry, line) === isOnPinned && y >= top && y < top + line.height
  );
}

export const rowOf = ({ lanes, rows }: Band, lane: number): number =>
  Math.floor((Math.min(lane, lanes - 1) * rows) / lanes);

/** The box of a slice whose source is shifted so far; null where its track isn't drawn or, with `orFolded`, folded. */
export function boxOf(
  geometry: Geometry,
  source: string,
  shift: number,
  summary: SliceSummary,
  orFolded = false,
): Box | null {
  const line = lineOf(geometry.layout, source, summary.track, orFolded);
  if (!line?.band) return null;
  const top = topOf(geometry, line) + line.band.top + rowOf(line.band, summary.lane) * line.band.rowHeight;
  const left = xOf(geometry, summary.start_ns + shift);
  const right = Math.max(left + 1, xOf(geometry, summary.start_ns + summary.dur_ns + shift));
  return { left, right, top, bottom: top + Math.max(1, line.band.rowHeight - (line.band.isMini ? 0 : 1)) };
}

export const LONG = 104; // pixels of a label with its length, and of one without
export const SHORT = 42;
const APART = 2;

/** A bookmark's edges in pixels. */
export interface Edges {
  letter: string;
  left: number;
  right: number;
}
export interface LabelPlace {
  letter: string;
  left: number;
  /** Whether there is no room for more than its letter. */
  isShort: boolean;
}

/** The labels of the visible bookmarks from the left: each as near to its bookmark's start as the others leave room. */
export function labelPlaces(bookmarks: Edges[], width: number): LabelPlace[] {
  const visible = bookmarks.filter(({ left, right }) => right >= 0 && left <= width).sort((a, b) => a.left - b.left);
  const lefts: number[] = [];
  visible.forEach((bookmark, i) => (lefts[i] = Math.max(0, bookmark.left, i ? lefts[i - 1]! + SHORT + APART : 0)));
  for (let i = visible.length - 1, end = width; i >= 0; end = lefts[i]! - APART, i--) {
    lefts[i] = Math.min(lefts[i]!, end - SHORT);
  }
  return visible.map(({ letter }, i) => {
    const end = i + 1 < visible.length ? lefts[i + 1]! - APART : width;
    return { letter, left: lefts[i]!, isShort: end - lefts[i]! < LONG };
  });
}
