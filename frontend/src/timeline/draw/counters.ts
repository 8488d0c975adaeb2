/** Draws counters, and reads their values. */

import { quantity } from "../../format/numbers.ts";
import { type Geometry, visibleLines, xOf } from "../model/geometry.ts";
import type { Line } from "../model/layout.ts";
import type { Counter } from "../../api/timeline_types.ts";
import { type Color, css, type Palette } from "./colors.ts";
import type { Source } from "../state/sources.ts";
import type { TileClient } from "../state/tile_client.ts";
import { type CurveTile, levelFor, type Piece } from "../model/tiles.ts";

const CATEGORY: Record<Counter["kind"], string> = {
  bytes: "Annotation",
  fraction: "Kernel",
  count: "Runtime",
  number: "Operator",
};

const ROOM = 3; // pixels above the largest value

/** A counter's value as text: "1.2 GiB". */
export const counterText = ({ kind, unit, is_relative }: Counter, value: number): string =>
  (is_relative && value > 0 ? "+" : "") + quantity(value, kind) + (kind === "number" && unit ? ` ${unit}` : unit);

/** The visible tiles of a counter. */
export function curvePieces(client: TileClient, { range, width }: Geometry, source: Source, counter: Counter) {
  const level = levelFor((range.to - range.from) / Math.max(1, width));
  return client.curves(source).pieces(counter.id, level, range.from - source.shift_ns, range.to - source.shift_ns);
}

/** What a curve was at a time: least, largest and last of its bucket; null where it had no value. */
export function valueAt(
  pieces: Piece<CurveTile>[],
  time: number,
): { least: number; most: number; last: number } | null {
  const piece = pieces.find(({ from, to }) => from <= time && time < to);
  if (!piece) return null;
  const bucket = Math.floor((time - piece.begin) / 2 ** piece.level);
  const [least, most, last] = [piece.tile.least, piece.tile.most, piece.tile.last].map((column) => column[bucket]!);
  return Number.isNaN(last!) ? null : { least: least!, most: most!, last: last! };
}

export class CounterPainter {
  constructor(private readonly pen: CanvasRenderingContext2D, private readonly client: TileClient) {}

  /** Draws all visible counters. */
  draw(geometry: Geometry, sources: Source[], palette: Palette) {
    for (const { line, top } of visibleLines(geometry)) {
      const source = line.curve && sources.find(({ id }) => id === line.curve!.source);
      if (!source) continue;
      const { counter } = line.curve!;
      const color = palette.colors[source.meta.categories.indexOf(CATEGORY[counter.kind])]![0]!;
      this.pen.save();
      this.pen.beginPath();
      this.pen.rect(0, Math.max(top, geometry.layout.pinnedHeight), geometry.width, line.height);
      this.pen.clip();
      for (const piece of curvePieces(this.client, geometry, source, counter)) {
        this.piece(geometry, source, counter, piece, { top, line, color });
      }
      this.pen.restore();
    }
  }

  private piece(
    geometry: Geometry,
    { shift_ns }: Source,
    { least, most }: Counter,
    { tile, level, begin, from, to }: Piece<CurveTile>,
    { top, line, color }: { top: number; line: Line; color: Color },
  ) {
    const { pen } = this;
    const low = Math.min(0, least), high = Math.max(most, low + 1e-9);
    const bottom = top + line.height - 1, tall = line.height - 1 - ROOM;
    const y = (value: number) => bottom - ((value - low) / (high - low)) * tall;
    const bucket = 2 ** level;
    const first = Math.max(0, Math.floor((Math.max(from, geometry.range.from - shift_ns) - begin) / bucket));
    const last = Math.min(511, Math.ceil((Math.min(to, geometry.range.to - shift_ns) - begin) / bucket));
    for (let i = first; i <= last; i++) {
      if (Number.isNaN(tile.last[i]!) || begin + i * bucket >= to) continue;
      const left = Math.floor(xOf(geometry, begin + i * bucket + shift_ns));
      const wide = Math.max(1, Math.floor(xOf(geometry, begin + (i + 1) * bucket + shift_ns)) - left);
      const upper = y(tile.most[i]!), lower = y(tile.least[i]!);
      pen.fillStyle = css(color, 0.28);
      pen.fillRect(left, upper, wide, bottom - upper);
      pen.fillStyle = css(color, 0.9);
      pen.fillRect(left, upper - 0.5, wide, Math.max(1.25, lower - upper));
    }
  }
}
