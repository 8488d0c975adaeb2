/** Draws a critical path over the boxes: a bar along each slice that it runs in, and lines from one to the next. */

import { type Box, boxOf, type Geometry, xOf } from "../model/geometry.ts";
import type { CrossRankSegment, PathSegment } from "../../api/timeline_types.ts";
import { css, type Palette } from "./colors.ts";
import type { Source } from "../state/sources.ts";

const BAR = 4;
const HALO = 1.5;
const NARROW = 3; // pixels
const BEFORE = "before the step";

/** Where a segment is drawn: over its slice, for its duration. */
export interface Bar extends Pick<Box, "left" | "right"> {
  y: number;
  /** The worker, and its thread or stream. */
  axis: string;
  /** Whether a new path begins here, as with each step. */
  begins: boolean;
  /** Start of the unrecorded part of the path that leads here. */
  unseen: number | null;
}
/** A line from the end of a bar to the begin of the next. */
export type Link = [from: Bar, to: Bar];

interface Piece {
  source: Source;
  segment: PathSegment;
  begins: boolean;
}

/** The bars of pieces that have a slice on a track that is drawn or folded; those side by side become one. */
function barsOfPieces(geometry: Geometry, pieces: Piece[]): Bar[] {
  const bars: Bar[] = [];
  let begins = true;
  let unseen: number | null = null;
  for (const { source: { id, shift_ns, meta }, segment: { from_ns, to_ns, slice, part }, begins: isFirst } of pieces) {
    begins ||= isFirst;
    const left = xOf(geometry, from_ns + shift_ns), right = xOf(geometry, to_ns + shift_ns);
    if (isFirst) unseen = !slice && part === BEFORE ? left : null;
    const box = slice && right > -geometry.width && left < 2 * geometry.width &&
      boxOf(geometry, id, shift_ns, slice, true);
    if (!box) continue;
    const { device, stream, pid, tid } = meta.tracks[slice.track]!;
    const y = box.bottom - BAR / 2 - HALO;
    const last = bars.at(-1);
    if (!begins && last?.y === y && left - last.right < 1) last.right = Math.max(last.right, right);
    else bars.push({ left, right, y, axis: [id, device, stream, pid, tid].join(" "), begins, unseen });
    begins = false;
    unseen = null;
  }
  return bars;
}

/** The bars of a worker's own path. */
export function barsOf(geometry: Geometry, source: Source, segments: PathSegment[]): Bar[] {
  const pieces = segments.map((segment, i) => ({
    source,
    segment,
    begins: segment.from_ns !== segments[i - 1]?.to_ns,
  }));
  return barsOfPieces(geometry, pieces);
}

/**
 * The bars of the path across ranks on all shown workers, in the order of the path. After a part on a hidden worker it
 * starts again without a connecting line.
 */
export function barsAcross(geometry: Geometry, shown: [Source, CrossRankSegment[]][]): Bar[] {
  const pieces = shown.flatMap(([source, list]) => list.map((segment) => ({ source, segment })));
  pieces.sort(({ segment: a }, { segment: b }) => a.first - b.first || a.from_ns - b.from_ns);
  const ordered = pieces.map(({ source, segment }, i) => {
    const before = pieces[i - 1]?.segment;
    return { source, segment, begins: before?.step !== segment.step || segment.first - before.last > 1 };
  });
  return barsOfPieces(geometry, ordered);
}

/** The lines between bars; none between narrow bars of one thread: so many of them would hide it. */
export function linksOf(bars: Bar[]): Link[] {
  const isNarrow = ({ left, right }: Bar) => right - left < NARROW;
  return bars.slice(1).flatMap((to, i): Link[] => {
    const from = bars[i]!;
    const isPlain = from.axis !== to.axis || to.left - from.right >= NARROW || !(isNarrow(from) || isNarrow(to));
    return isPlain && !to.begins ? [[from, to]] : [];
  });
}

/** Draws a path below the pinned lines. */
export function drawPath(
  pen: CanvasRenderingContext2D,
  geometry: Geometry,
  bars: Bar[],
  { text, surface }: Palette,
) {
  const links = linksOf(bars);
  const { width, height, layout: { pinnedHeight } } = geometry;
  pen.save();
  pen.beginPath();
  pen.rect(0, pinnedHeight, width, height);
  pen.clip();
  for (const [color, more] of [[css(surface, 0.85), 2 * HALO], [css(text), 0]] as const) {
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = 1.25 + more;
    pen.beginPath();
    for (const [from, to] of links) {
      pen.moveTo(from.right, from.y);
      pen.lineTo(to.left, to.y);
    }
    pen.stroke();
    pen.beginPath();
    pen.setLineDash([5, 4]);
    for (const { left, y, unseen } of bars) {
      if (unseen === null) continue;
      pen.moveTo(unseen, y);
      pen.lineTo(left, y);
    }
    pen.stroke();
    pen.setLineDash([]);
    for (const { left, right, y } of bars) {
      const halo = right - left < NARROW ? 0 : more;
      pen.fillRect(left - halo / 2, y - (BAR + halo) / 2, Math.max(1, right - left) + halo, BAR + halo);
    }
  }
  pen.restore();
}
