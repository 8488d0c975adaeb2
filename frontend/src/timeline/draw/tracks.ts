/** Draws the tracks: boxes by the raster, then names in them. */

import { type Geometry, visibleLines } from "../model/geometry.ts";
import type { Line } from "../model/layout.ts";
import { readableName } from "../../format/readable_names.ts";
import type { TextFitter } from "../model/text_fit.ts";
import { type LabelColors, mixed, type Palette, pixel } from "./colors.ts";
import { paint, type Target } from "./raster.ts";
import type { Step } from "../../api/timeline_types.ts";
import type { Source } from "../state/sources.ts";
import type { TileClient } from "../state/tile_client.ts";
import { levelFor } from "../model/tiles.ts";

export interface Style {
  palette: Palette;
  colors: Map<string, LabelColors>;
  fitter: TextFitter;
}

interface NameText {
  slice: number;
  left: number;
  right: number;
  top: number;
  text: string;
  isDark: boolean;
}

const NARROWEST = 22; // pixels of a box with a name in it
const MOST_NAMES = 2500;
export const FONT = "11px system-ui, sans-serif";

/** The background: a line where each step begins and ends, a faint one at each tick of the ruler. */
function fillBackdrop(target: Target, geometry: Geometry, steps: Step[], marked: number[], palette: Palette) {
  const { backdrop, width } = target;
  backdrop.fill(pixel(palette.surface));
  const put = (time: number, color: number) => {
    const x = Math.floor(((time - geometry.range.from) / (geometry.range.to - geometry.range.from)) * width);
    if (x >= 0 && x < width) backdrop[x] = color;
  };
  const faint = pixel(mixed(palette.surface, palette.line, 0.55)),
    plain = pixel(mixed(palette.line, palette.quiet, 0.2));
  for (const time of marked) put(time, faint);
  for (const { start_ns, end_ns } of steps) {
    if ((end_ns - start_ns) / target.nsPerPixel < NARROWEST) continue; // so many lines would hide the slices
    put(start_ns, plain);
    put(end_ns, plain);
  }
}

function clear({ pixels, width, backdrop }: Target, from: number, to: number) {
  for (let y = from; y < to; y++) pixels.set(backdrop, y * width);
}

export class TrackPainter {
  private target: Target | null = null;
  private image: ImageData | null = null;
  private readonly small = document.createElement("canvas");
  private letters: NameText[] = [];
  /** How many boxes the last frame took. */
  boxes = 0;

  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly client: TileClient,
  ) {}

  /** Pixels for the raster; `ratio` of them are a CSS pixel. */
  private prepareTable({ width, height, range }: Geometry, ratio: number): Target {
    const wide = Math.max(1, Math.round(width * ratio)), high = Math.max(1, Math.round(height * ratio));
    if (!this.target || !this.image || this.image.width !== wide || this.image.height !== high) {
      this.image = new ImageData(wide, high);
      const pixels = new Uint32Array(this.image.data.buffer);
      this.target = { pixels, width: wide, height: high, backdrop: new Uint32Array(wide), from: 0, nsPerPixel: 1 };
    }
    this.target.nsPerPixel = (range.to - range.from) / wide;
    return this.target;
  }

  /** Draws all visible lines; `ratio` pixels are drawn per CSS pixel, `screen` pixels are shown. */
  draw(
    geometry: Geometry,
    sources: Source[],
    style: Style,
    { ratio, screen, find, steps, marked }: {
      ratio: number;
      screen: number;
      find: string;
      steps: Step[];
      marked: number[];
    },
  ) {
    const target = this.prepareTable(geometry, ratio);
    fillBackdrop(target, geometry, steps, marked, style.palette);
    clear(target, 0, target.height);
    this.letters = [];
    this.boxes = 0;
    const bySource = new Map(sources.map((source) => [source.id, source]));
    const pinnedEnd = Math.round(geometry.layout.pinnedHeight * ratio);
    let isPinnedCleared = pinnedEnd === 0;
    for (const { line, top } of visibleLines(geometry)) {
      if (!isPinnedCleared && geometry.layout.pinned.includes(line)) {
        clear(target, 0, Math.min(pinnedEnd, target.height));
        this.letters = this.letters.filter((letters) => letters.top >= geometry.layout.pinnedHeight - 4);
        isPinnedCleared = true;
      }
      const source = line.band && bySource.get(line.band.source);
      if (source) this.line(target, geometry, source, line, top, ratio, style, find);
    }
    this.put(target, ratio, screen);
    this.write(screen);
  }

  private line(
    target: Target,
    geometry: Geometry,
    source: Source,
    { band }: Line,
    top: number,
    ratio: number,
    style: Style,
    find: string,
  ) {
    if (!band) return;
    const colors = style.colors.get(source.id)!;
    const from = geometry.range.from - source.shift_ns, to = geometry.range.to - source.shift_ns;
    target.from = from;
    const level = levelFor(target.nsPerPixel);
    const rowHeight = band.isMini
      ? Math.max(1, Math.round(band.rowHeight * ratio))
      : Math.round(band.rowHeight * ratio);
    const place = {
      lanes: band.lanes,
      rows: band.rows,
      top: Math.round((top + band.top) * ratio),
      rowHeight,
      gap: band.isMini ? 0 : Math.max(1, Math.round(ratio)),
    };
    const minNameWidth = NARROWEST * ratio;
    const name = (left: number, right: number, y: number, label: number, slice: number) =>
      this.name(
        source,
        colors,
        style,
        { left: left / ratio, right: right / ratio, top: y / ratio, label, slice },
        geometry.width,
      );
    const all = this.client.boxes(source).pieces(band.track, level, from, to);
    const letters = band.isMini ? null : name;
    const color = find ? colors.dimmed : colors.full;
    this.boxes += paint(
      target,
      { ...place, pieces: all, colors: color, isOver: false },
      find ? null : letters,
      minNameWidth,
    );
    if (!find) return;
    const matches = this.client.boxes(source, find).pieces(band.track, level, from, to);
    this.boxes += paint(
      target,
      { ...place, pieces: matches, colors: colors.full, isOver: true },
      letters,
      minNameWidth,
    );
  }

  private name(
    source: Source,
    colors: LabelColors,
    { fitter }: Style,
    { left, right, top, label, slice }: { left: number; right: number; top: number; label: number; slice: number },
    width: number,
  ) {
    if (this.letters.length >= MOST_NAMES) return;
    const from = Math.max(0, left), to = Math.min(width, right);
    const last = this.letters.at(-1);
    if (to - from < NARROWEST || (last?.slice === slice && last.top === top)) return; // a slice goes over several tiles
    const text = fitter.fit(readableName(source.labels.text(label)), to - from - 9);
    if (text) this.letters.push({ slice, left: from, right: to, top, text, isDark: colors.darkLetters[label] === 1 });
  }

  private put({ width, height }: Target, ratio: number, screen: number) {
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    if (ratio === screen) return this.pen.putImageData(this.image!, 0, 0);
    this.small.width = width;
    this.small.height = height;
    this.small.getContext("2d")!.putImageData(this.image!, 0, 0);
    this.pen.imageSmoothingEnabled = false;
    this.pen.drawImage(this.small, 0, 0, this.pen.canvas.width, this.pen.canvas.height);
  }

  private write(screen: number) {
    const { pen } = this;
    pen.setTransform(screen, 0, 0, screen, 0, 0);
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const isDark of [true, false]) {
      pen.fillStyle = isDark ? "#000" : "#fff";
      for (const one of this.letters) {
        if (one.isDark === isDark) pen.fillText(one.text, Math.round(one.left) + 4, Math.round(one.top) + 9);
      }
    }
  }
}
