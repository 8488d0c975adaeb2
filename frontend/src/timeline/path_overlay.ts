/** Draws a critical path over the boxes: a bar along each slice that it runs in, and lines from one to the next. */

import { type Box, boxOf, type Geometry, xOf } from "./geometry.ts";
import type { Stretch } from "./model.ts";
import { css, type Palette } from "./palette.ts";
import type { Source } from "./state.ts";

const BAR = 4;
const HALO = 1.5;
const NARROW = 3; // pixels

/** Where a stretch is drawn: over its slice, as long as it lasts. */
export interface Bar extends Pick<Box, "left" | "right"> {
  y: number;
  /** The thread or stream. */
  axis: string;
  /** Whether the path begins anew here: with each step. */
  begins: boolean;
}
/** A line from the end of a bar to the begin of the next. */
export type Link = [from: Bar, to: Bar];

/** The bars of the stretches that have a slice on a track that is drawn; those side by side become one. */
export function barsOf(geometry: Geometry, { id, shift_ns, meta }: Source, stretches: Stretch[]): Bar[] {
  const bars: Bar[] = [];
  let reached = -Infinity, begins = true;
  for (const { from_ns, to_ns, slice } of stretches) {
    begins ||= from_ns !== reached;
    reached = to_ns;
    const left = xOf(geometry, from_ns + shift_ns), right = xOf(geometry, to_ns + shift_ns);
    const box = slice && right > -geometry.width && left < 2 * geometry.width && boxOf(geometry, id, shift_ns, slice);
    if (!box) continue;
    const { device, stream, pid, tid } = meta.tracks[slice.track]!;
    const y = box.bottom - BAR / 2 - HALO;
    const last = bars.at(-1);
    if (!begins && last?.y === y && left - last.right < 1) last.right = Math.max(last.right, right);
    else bars.push({ left, right, y, axis: [device, stream, pid, tid].join(" "), begins });
    begins = false;
  }
  return bars;
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

/** Draws the path of one source below the pinned lines. */
export function drawPath(
  pen: CanvasRenderingContext2D,
  geometry: Geometry,
  source: Source,
  stretches: Stretch[],
  { text, surface }: Palette,
) {
  const bars = barsOf(geometry, source, stretches), links = linksOf(bars);
  const { width, height, laid: { pinnedHeight } } = geometry;
  pen.save();
  pen.beginPath();
  pen.rect(0, pinnedHeight, width, height);
  pen.clip();
  for (const [ink, more] of [[css(surface, 0.85), 2 * HALO], [css(text), 0]] as const) {
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 1.25 + more;
    pen.beginPath();
    for (const [from, to] of links) {
      pen.moveTo(from.right, from.y);
      pen.lineTo(to.left, to.y);
    }
    pen.stroke();
    for (const { left, right, y } of bars) {
      const halo = right - left < NARROW ? 0 : more;
      pen.fillRect(left - halo / 2, y - (BAR + halo) / 2, Math.max(1, right - left) + halo, BAR + halo);
    }
  }
  pen.restore();
}
