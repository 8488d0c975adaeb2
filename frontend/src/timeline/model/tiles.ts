/** Tiles: the boxes of a track's lanes in 512 buckets of 2^level ns, as the server sends them. */

export const BUCKETS_BITS = 9;

/** Below it quanta would be parts of a nanosecond. */
export const FINEST = 3;

export interface Tile {
  /** How many lanes. */
  rows: number;
  /** Where each lane's boxes begin, and their number at the end. */
  offsets: Uint32Array;
  /** In quanta from the tile's begin. */
  x: Int32Array;
  width: Uint32Array;
  slice: Uint32Array;
  label: Uint32Array;
  count: Uint32Array;
  /** How long the slices that a box stands for last together, in quanta. */
  busy: Uint32Array;
}

/** ns of a quantum, in which a tile's numbers are; eight of them are a bucket. */
export const quantum = (level: number): number => 2 ** Math.max(0, level - 3);

/** ns that a tile spans. */
export const span = (level: number): number => 2 ** (level + BUCKETS_BITS);

/** The level whose buckets are one to two pixels wide. */
export const levelFor = (nsPerPixel: number): number =>
  Math.max(FINEST, Math.floor(Math.log2(Math.max(nsPerPixel, 1e-9))) + 1);

function tileAt(buffer: ArrayBuffer, start: number): Tile {
  const [rows, boxes] = new Uint32Array(buffer, start, 2) as unknown as [number, number];
  let at = start + 8;
  const next = (length: number) => {
    const column = new Uint32Array(buffer, at, length);
    at += 4 * length;
    return column;
  };
  const offsets = next(rows + 1);
  const x = new Int32Array(buffer, at, boxes);
  at += 4 * boxes;
  const [width, slice, label, count, busy] = Array.from({ length: 5 }, () => next(boxes)) as [
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
    Uint32Array,
  ];
  return { rows, offsets, x, width, slice, label, count, busy };
}

/** The tiles of an answer; they look at its bytes, nothing is copied. */
export function tilesIn(buffer: ArrayBuffer): Tile[] {
  const count = new Uint32Array(buffer, 0, 1)[0]!;
  const sizes = new Uint32Array(buffer, 4, count);
  let start = 4 * (count + 1);
  return Array.from(sizes, (size) => {
    const tile = tileAt(buffer, start);
    start += size;
    return tile;
  });
}

/** A kind of tiles: its route, and how to read a batch. */
export interface Kind<T> {
  route: string;
  read: (buffer: ArrayBuffer) => T[];
  bytesOf: (tile: T) => number;
}

const bytesOf = ({ rows, x }: Tile): number => 4 * (rows + 3 + 6 * x.length);

export const BOXES: Kind<Tile> = { route: "timeline/tiles", read: tilesIn, bytesOf };

/** Of each bucket of a curve the least, the largest and the last value; NaN where there is none. */
export interface CurveTile {
  least: Float64Array;
  most: Float64Array;
  last: Float64Array;
}

const BUCKETS = 2 ** BUCKETS_BITS;

function curvesIn(buffer: ArrayBuffer): CurveTile[] {
  const column = (at: number) => new Float64Array(buffer, 8 * BUCKETS * at, BUCKETS);
  const count = buffer.byteLength / (3 * 8 * BUCKETS);
  return Array.from(
    { length: count },
    (_, i) => ({ least: column(3 * i), most: column(3 * i + 1), last: column(3 * i + 2) }),
  );
}

export const CURVES: Kind<CurveTile> = { route: "timeline/counters", read: curvesIn, bytesOf: () => 3 * 8 * BUCKETS };

/** The part of a tile to draw, between two times. */
export interface Piece<T = Tile> {
  tile: T;
  level: number;
  begin: number;
  from: number;
  to: number;
}

export type Lookup<T> = (level: number, index: number) => T | undefined;

/** How many levels coarser the substitute for a missing tile may be. */
const MOST_COARSER = 40;

/** The pieces that cover a range at a level; where a tile is missing the finest coarser one stands in. */
export function piecesFor<T>(lookup: Lookup<T>, level: number, from: number, to: number): Piece<T>[] {
  const length = span(level);
  const pieces: Piece<T>[] = [];
  const first = Math.max(0, Math.floor(from / length));
  for (let index = first; index * length < to; index++) {
    for (let up = 0; up <= MOST_COARSER; up++) {
      const above = Math.floor(index / 2 ** up);
      const tile = lookup(level + up, above);
      if (!tile) continue;
      const last = pieces.at(-1);
      if (last?.tile === tile) last.to = (index + 1) * length;
      else {
        const begin = above * span(level + up);
        pieces.push({ tile, level: level + up, begin, from: index * length, to: (index + 1) * length });
      }
      break;
    }
  }
  return pieces;
}
