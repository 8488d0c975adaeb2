/** What is drawn over the boxes: idle gaps, the selected area, the selection with its arrows, the hovered slice. */

import { FONT } from "./tracks.ts";
import { type Box, boxOf, type Geometry, topOf, visibleLines, xOf } from "../model/geometry.ts";
import type { Gap } from "../state/idle_gaps.ts";
import type { SliceSummary } from "../../api/timeline_types.ts";
import { type Color, css, type Palette } from "./colors.ts";
import type { Area, ChosenGap } from "../model/url_codec.ts";
import type { Source } from "../state/sources.ts";
import { duration } from "../model/times.ts";

const NARROWEST_GAP = 3;
const LABELED_GAP = 90;
const MOST_ARROWS = 240;
const STUB = 34; // pixels of an arrow to a slice out of view

export interface Outline {
  source: string;
  summary: SliceSummary;
}
export interface Curve {
  kind: string;
  source: string;
  from: SliceSummary;
  to: SliceSummary;
}

export class OverlayPainter {
  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly fit: (text: string, room: number) => string,
  ) {}

  /** The gaps of devices, behind the streams in which nothing ran. */
  gaps(
    geometry: Geometry,
    sources: Source[],
    byDevice: Record<string, Map<number, Gap[]>>,
    chosen: ChosenGap | null,
    { warning, text, accent }: Palette,
  ) {
    this.within(geometry, () => {
      const labeled = new Set<string>();
      for (const { line: { band }, top } of visibleLines(geometry)) {
        const source = band && sources.find(({ id }) => id === band.source);
        if (!band || !source || band.part !== "work") continue;
        const device = source.meta.tracks[band.track]!.device ?? -1;
        const isFirst = !labeled.has(`${source.id} ${device}`);
        labeled.add(`${source.id} ${device}`);
        const height = band.rows * band.rowHeight - (band.isMini ? 0 : 1);
        for (const gap of this.visibleGaps(geometry, source, byDevice[source.id]?.get(device) ?? [])) {
          const isChosen = chosen?.source === source.id && chosen.device === device &&
            chosen.start_ns === gap.gap.start_ns;
          this.pen.fillStyle = css(warning, isChosen ? 0.3 : 0.13);
          this.pen.fillRect(gap.left, top + band.top, gap.wide, height);
          if (isChosen) {
            this.pen.strokeStyle = css(accent);
            this.pen.lineWidth = 2;
            this.pen.strokeRect(gap.left + 1, top + band.top + 1, gap.wide - 2, height - 2);
          }
          if (isFirst && gap.wide > LABELED_GAP && !band.isMini) this.blame(gap, top + band.top + 9, css(text, 0.72));
        }
      }
    });
  }

  private visibleGaps(geometry: Geometry, { shift_ns }: Source, list: Gap[]) {
    return list.flatMap((gap) => {
      const left = Math.max(0, xOf(geometry, gap.start_ns + shift_ns));
      const right = Math.min(geometry.width, xOf(geometry, gap.start_ns + gap.dur_ns + shift_ns));
      return right - left < NARROWEST_GAP ? [] : [{ gap, left, wide: right - left }];
    });
  }

  private blame({ gap, left, wide }: { gap: Gap; left: number; wide: number }, y: number, color: string) {
    const text = this.fit(`${duration(gap.dur_ns)} ${gap.blame}`, wide - 12);
    this.pen.font = FONT;
    this.pen.textAlign = "center";
    this.pen.fillStyle = color;
    this.pen.fillText(text, left + wide / 2, y);
    this.pen.textAlign = "left";
  }

  /** The chosen time, over the tracks that it is for; without any, over all. */
  area(geometry: Geometry, chosen: Area, { accent, surface }: Palette) {
    const edges = this.tint(geometry, chosen, accent, 0.13);
    if (!edges) return;
    this.pen.fillStyle = css(accent, 0.8);
    for (const x of edges) this.pen.fillRect(Math.round(x) - (x === edges[1] ? 1 : 0), 0, 1, geometry.height);
    const [left, right] = edges;
    const middle = (Math.max(0, left) + Math.min(geometry.width, right)) / 2;
    this.tag(duration(chosen.to - chosen.from), middle, accent, surface);
  }

  /** A bookmark: its bounds over all tracks as dashed lines, a faint tint over its own. */
  bookmark(geometry: Geometry, mark: Area, { mark: color }: Palette) {
    const edges = this.tint(geometry, mark, color, 0.09);
    if (!edges) return;
    const { pen } = this;
    pen.strokeStyle = css(color, 0.85);
    pen.lineWidth = 1;
    pen.setLineDash([5, 3]);
    pen.beginPath();
    for (const x of edges) {
      const at = Math.round(x) + (x === edges[1] ? -0.5 : 0.5);
      pen.moveTo(at, 0);
      pen.lineTo(at, geometry.height);
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Tints a time on its tracks; returns its edges in pixels, or null where it is out of sight. */
  private tint(geometry: Geometry, chosen: Area, color: Color, alpha: number): [number, number] | null {
    const { pen } = this;
    const left = xOf(geometry, chosen.from), right = xOf(geometry, chosen.to);
    if (right < 0 || left > geometry.width) return null;
    pen.fillStyle = css(color, alpha);
    if (!chosen.tracks.length) pen.fillRect(left, 0, right - left, geometry.height);
    else {
      const isChosen = new Set(chosen.tracks.map(({ source, track }) => `${track}.${source}`));
      this.within(geometry, () => {
        for (const { line, top } of visibleLines(geometry)) {
          if (!line.band || !isChosen.has(`${line.band.track}.${line.band.source}`)) continue;
          pen.fillRect(left, top, right - left, line.height + 1);
        }
      });
    }
    return [left, right];
  }

  private tag(text: string, middle: number, accent: Palette["accent"], surface: Palette["surface"]) {
    const { pen } = this;
    pen.font = `600 ${FONT}`;
    const wide = pen.measureText(text).width + 12;
    pen.fillStyle = css(accent);
    pen.beginPath();
    pen.roundRect(middle - wide / 2, 3, wide, 17, 4);
    pen.fill();
    pen.fillStyle = css(surface);
    pen.fillText(text, middle - wide / 2 + 6, 12);
  }

  /** Frames around slices. */
  outline(geometry: Geometry, sources: Source[], { source, summary }: Outline, color: string, wide: number) {
    const box = this.box(geometry, sources, source, summary);
    if (!box) return;
    this.within(geometry, () => {
      const left = Math.round(Math.max(-4, box.left)), right = Math.round(Math.min(geometry.width + 4, box.right));
      const inner = Math.max(2, right - left - (right - left < 4 ? 0 : 1)); // a box keeps its last pixel free
      this.pen.strokeStyle = color;
      this.pen.lineWidth = wide;
      this.pen.strokeRect(left - wide / 2, box.top - wide / 2, inner + wide, box.bottom - box.top + wide);
    }, this.isPinnedTrack(geometry, source, summary));
  }

  /** Frames around one collective on several workers, and a line along their starts, which shows who was late. */
  peers(geometry: Geometry, sources: Source[], list: Outline[], color: string) {
    for (const one of list) this.outline(geometry, sources, one, color, 2);
    const boxes = list.map(({ source, summary }) => this.box(geometry, sources, source, summary)).filter((box) =>
      box !== null
    );
    this.pen.strokeStyle = color;
    this.pen.lineWidth = 1;
    this.pen.setLineDash([3, 3]);
    this.pen.beginPath();
    for (const { left, top, bottom } of boxes) {
      this.pen.lineTo(left, top);
      this.pen.lineTo(left, bottom);
    }
    this.pen.stroke();
    this.pen.setLineDash([]);
  }

  /** Arrows from slices to those that they caused; a short one where an end is out of view. */
  arrows(geometry: Geometry, sources: Source[], curves: Curve[], { accent, quiet }: Palette) {
    const alpha = curves.length > 40 ? 0.4 : 0.8;
    for (const { kind, source, from, to } of curves.slice(0, MOST_ARROWS)) {
      const a = this.box(geometry, sources, source, from), b = this.box(geometry, sources, source, to);
      if (!a || !b) continue;
      const color = css(kind === "fwdbwd" ? quiet : accent, alpha);
      this.between(geometry, a, b, color);
    }
  }

  private between({ width }: Geometry, a: Box, b: Box, color: string) {
    const begins = a.left + Math.min(4, (a.right - a.left) / 2), middle = (b.top + b.bottom) / 2;
    const isVisible = begins >= 0 && begins <= width, leads = b.left >= 0 && b.left <= width;
    const isDown = b.top > a.top, y = isDown ? a.bottom : a.top;
    if (isVisible && leads) this.arrow(begins, y, b.left, middle, color);
    else if (isVisible) this.arrow(begins, y, begins + (b.left < 0 ? -STUB : STUB), y + (isDown ? 8 : -8), color);
    else if (leads) this.arrow(b.left + (begins < 0 ? -STUB : STUB), middle + (isDown ? -8 : 8), b.left, middle, color);
  }

  private arrow(x0: number, y0: number, x1: number, y1: number, color: string) {
    const { pen } = this;
    const back = x1 < x0 ? 1 : -1, tip = x1 + 6 * back;
    const bend = Math.min(60, Math.max(10, Math.abs(x1 - x0) / 2));
    pen.strokeStyle = pen.fillStyle = color;
    pen.lineWidth = 1.25;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0, (y0 + y1) / 2, x1 + bend * back, y1, tip, y1);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(tip, y1 - 3.5);
    pen.lineTo(tip, y1 + 3.5);
    pen.fill();
  }

  private box(geometry: Geometry, sources: Source[], id: string, summary: SliceSummary): Box | null {
    const source = sources.find((one) => one.id === id);
    return source ? boxOf(geometry, id, source.shift_ns, summary) : null;
  }

  private isPinnedTrack({ layout }: Geometry, source: string, { track }: SliceSummary): boolean {
    return layout.pinned.some(({ band }) => band?.source === source && band.track === track);
  }

  /** Draws without touching the pinned lines, unless it is about these. */
  private within({ width, height, layout: { pinnedHeight } }: Geometry, draw: () => void, isPinned = false) {
    this.pen.save();
    this.pen.beginPath();
    this.pen.rect(0, isPinned ? 0 : pinnedHeight, width, height);
    this.pen.clip();
    draw();
    this.pen.restore();
  }

  /** Rules between the pinned and the other lines, and between processes. */
  rules(geometry: Geometry, { line, quiet }: Palette) {
    this.pen.fillStyle = css(line);
    for (const { line: one } of visibleLines(geometry)) {
      if (one.kind !== "process" && one.kind !== "source") continue;
      const y = Math.round(topOf(geometry, one));
      if (y >= geometry.layout.pinnedHeight) this.pen.fillRect(0, y, geometry.width, 1);
    }
    if (geometry.layout.pinnedHeight) {
      this.pen.fillStyle = css(quiet, 0.5);
      this.pen.fillRect(0, geometry.layout.pinnedHeight - 1, geometry.width, 1);
    }
  }
}
