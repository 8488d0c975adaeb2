/** Boxes as pixels: each row of lanes is one line of colors, made once and copied down. */

import { type Piece, quantum } from "../model/tiles.ts";

/** Pixels to draw on, and which time they show. */
export interface Target {
  pixels: Uint32Array;
  width: number;
  height: number;
  /** The background: one color per column. */
  backdrop: Uint32Array;
  /** The time at the left edge, on the clock of the source, and ns per pixel. */
  from: number;
  nsPerPixel: number;
}

/** The lanes of a track, or only its search results. */
export interface PaintedTrack {
  pieces: Piece[];
  lanes: number;
  rows: number;
  /** The first row's top and the rows' height, in pixels; the last `gap` of these stay free. */
  top: number;
  rowHeight: number;
  gap: number;
  /** The color of each label. */
  colors: Uint32Array;
  /** Whether it is drawn over the boxes below, not over the background. */
  isOver: boolean;
}

/** A box that is wide enough for a name. */
export type OnBox = (left: number, right: number, top: number, label: number, slice: number) => void;

/** Quanta of a bucket. */
const BUCKET = 8;

/** From this width on a box keeps its last column free, so that neighbors can be distinguished. */
const MIN_SEPARATED = 4;

/** A row's colors, and how many pixels of each column stay free at the top. */
class Scanline {
  readonly colors: Uint32Array;
  readonly free: Uint8Array;
  hasShort = false;
  isEmpty = true;

  constructor(width: number) {
    this.colors = new Uint32Array(width);
    this.free = new Uint8Array(width);
  }

  clear() {
    this.colors.fill(0);
    this.free.fill(0);
    this.hasShort = false;
    this.isEmpty = true;
  }

  fill(from: number, to: number, color: number, free: number) {
    this.colors.fill(color, from, to);
    if (free || this.hasShort) this.free.fill(free, from, to);
    if (free) this.hasShort = true;
    this.isEmpty = false;
  }
}

let line = new Scanline(0);

/** Draws the lanes of a track; returns the number of boxes. */
export function paint(target: Target, track: PaintedTrack, onBox: OnBox | null, minNameWidth = 0): number {
  if (line.colors.length !== target.width) line = new Scanline(target.width);
  const { lanes, rows, top, rowHeight } = track;
  let boxes = 0, row = -1;
  for (let lane = 0; lane < lanes; lane++) {
    const at = Math.floor((lane * rows) / lanes);
    if (at !== row) {
      if (row >= 0) copyDown(target, track, top + row * rowHeight);
      line.clear();
      row = at;
    }
    const y = top + at * rowHeight;
    if (y + rowHeight <= 0 || y >= target.height) continue;
    for (const piece of track.pieces) {
      if (lane < piece.tile.rows) boxes += scan(target, track, piece, lane, y, onBox, minNameWidth);
    }
  }
  if (row >= 0) copyDown(target, track, top + row * rowHeight);
  return boxes;
}

/** Puts a lane's boxes of one piece into the line. */
function scan(
  { from, nsPerPixel, width }: Target,
  { colors, rowHeight, gap }: PaintedTrack,
  { tile, level, begin, from: clipFrom, to: clipTo }: Piece,
  lane: number,
  y: number,
  onBox: OnBox | null,
  minNameWidth: number,
): number {
  const { x, width: widths, label, count, busy, slice, offsets } = tile;
  const each = quantum(level) / nsPerPixel, zero = (begin - from) / nsPerPixel;
  const bucket = BUCKET * each;
  const first = Math.max(0, Math.floor((clipFrom - from) / nsPerPixel));
  const last = Math.min(width, Math.ceil((clipTo - from) / nsPerPixel));
  const tall = Math.max(1, rowHeight - gap);
  const end = offsets[lane + 1]!;
  let drawn = 0;
  for (let i = offsets[lane]!; i < end; i++) {
    const left = zero + x[i]! * each, wide = widths[i]! * each;
    let a: number, b: number, free = 0;
    if (wide < 1.5 * bucket && (count[i]! > 1 ? wide < bucket : wide < 1)) {
      const begins = zero + Math.floor(x[i]! / BUCKET) * bucket;
      a = Math.floor(begins);
      b = Math.max(a + 1, Math.floor(begins + bucket));
      const high = Math.round(tall * Math.min(1, busy[i]! / BUCKET));
      free = tall - Math.max(Math.min(tall, 3), high);
    } else {
      a = Math.floor(left);
      b = Math.max(a + 1, Math.floor(left + wide));
    }
    if (b <= first || a >= last) continue;
    drawn++;
    if (b - a >= minNameWidth && onBox) onBox(a, b, y, label[i]!, slice[i]!);
    const visibleEnd = b - a >= MIN_SEPARATED && b < last ? b - 1 : b;
    line.fill(Math.max(a, first), Math.min(visibleEnd, last), colors[label[i]!]!, free);
  }
  return drawn;
}

/** Copies the line down over the height of a row. */
function copyDown({ pixels, width, height, backdrop }: Target, { rowHeight, gap, isOver }: PaintedTrack, top: number) {
  if (line.isEmpty) return;
  const { colors, hasShort } = line;
  const begin = Math.max(0, top), end = Math.min(height, top + Math.max(1, rowHeight - gap));
  if (isOver || hasShort) return copyDownPixels({ pixels, width, backdrop }, begin, end, top, isOver);
  for (let i = 0; i < width; i++) if (!colors[i]) colors[i] = backdrop[i]!;
  for (let y = begin; y < end; y++) pixels.set(colors, y * width);
}

/** Copies it pixel by pixel, where the background shows through. */
function copyDownPixels(
  { pixels, width, backdrop }: Pick<Target, "pixels" | "width" | "backdrop">,
  begin: number,
  end: number,
  top: number,
  isOver: boolean,
) {
  const { colors, free } = line;
  for (let y = begin; y < end; y++) {
    const depth = y - top, at = y * width;
    for (let i = 0; i < width; i++) {
      const color = colors[i]!;
      if (color && depth >= free[i]!) pixels[at + i] = color;
      else if (!isOver) pixels[at + i] = backdrop[i]!;
    }
  }
}
