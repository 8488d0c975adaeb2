/** Which box is at a point, and which edges are near it. */

import type { Band } from "../model/layout.ts";
import { type Piece, quantum } from "../model/tiles.ts";

export interface Hit {
  slice: number;
  label: number;
  lane: number;
  count: number;
  /** In the source's own time, as exact as the tile is. */
  start_ns: number;
  dur_ns: number;
}

/** How far from a box the pointer may be, in pixels. */
const NEAR = 3;

/** The lanes that share the row at a height within the band; the deepest first, as it is drawn last. */
export function lanesAt({ lanes, rows, rowHeight }: Band, y: number): number[] {
  const row = Math.floor(y / rowHeight);
  if (row < 0 || row >= rows) return [];
  const all = Array.from({ length: lanes }, (_, lane) => lane);
  return all.filter((lane) => Math.floor((lane * rows) / lanes) === row).reverse();
}

/** The box of a lane that is nearest to a time, if one is near enough. */
export function nearestBox(pieces: Piece[], lane: number, time: number, nsPerPixel: number): Hit | null {
  let best: Hit | null = null, far = NEAR * nsPerPixel;
  for (const { tile, level, begin, from, to } of pieces) {
    if (time < from - far || time > to + far || lane >= tile.rows) continue;
    const each = quantum(level);
    for (let i = tile.offsets[lane]!; i < tile.offsets[lane + 1]!; i++) {
      const start_ns = begin + tile.x[i]! * each, dur_ns = tile.width[i]! * each;
      const distance = Math.max(start_ns - time, time - start_ns - dur_ns, 0);
      if (distance > far || (distance === far && best)) continue;
      far = distance;
      best = { slice: tile.slice[i]!, label: tile.label[i]!, lane, count: tile.count[i]!, start_ns, dur_ns };
    }
  }
  return best;
}

/** The box at a height of a band. */
export function boxAt(band: Band, pieces: Piece[], y: number, time: number, nsPerPixel: number): Hit | null {
  for (const lane of lanesAt(band, y)) {
    const hit = nearestBox(pieces, lane, time, nsPerPixel);
    if (hit) return hit;
  }
  return null;
}

/** A time, and the slice that begins or ends there, if it is the edge of one. */
export interface Edge {
  time: number;
  slice: number | null;
  isEnd: boolean;
}

/** The edge of a box of these lanes that is nearest to a time within so many ns; else the time itself. */
export function nearestEdge(pieces: Piece[], lanes: number[], time: number, within: number): Edge {
  let best: Edge = { time, slice: null, isEnd: false }, far = within;
  for (const { tile, level, begin } of pieces) {
    const each = quantum(level);
    for (const lane of lanes) {
      if (lane >= tile.rows) continue;
      for (let i = tile.offsets[lane]!; i < tile.offsets[lane + 1]!; i++) {
        const start = begin + tile.x[i]! * each;
        for (const [edge, isEnd] of [[start, false], [start + tile.width[i]! * each, true]] as const) {
          if (Math.abs(edge - time) >= far) continue;
          far = Math.abs(edge - time);
          best = { time: edge, slice: tile.slice[i]!, isEnd };
        }
      }
    }
  }
  return best;
}
