/** The canvas: draws a frame whenever its inputs change, and animates. */

import { effect } from "@preact/signals";
import type { CrossRankSegment, PathSegment } from "../../api/timeline_types.ts";
import { css, LabelColors, type Palette, paletteOf } from "./colors.ts";
import { CounterPainter, curvePieces, valueAt } from "./counters.ts";
import { HEAD_HEIGHT, HeaderPainter, type HeadState } from "./header.ts";
import { boxAt, type Edge, type Hit, lanesAt, nearestEdge } from "./hit_test.ts";
import { Motion } from "./motion.ts";
import { type Outline, OverlayPainter } from "./overlay.ts";
import { barsAcross, barsOf, drawPath } from "./path_overlay.ts";
import { FONT, TrackPainter } from "./tracks.ts";
import { type Geometry, lineAt, nsPerPixel, timeAt, visibleLines } from "../model/geometry.ts";
import type { Labels } from "../model/labels.ts";
import type { Line } from "../model/layout.ts";
import { TextFitter } from "../model/text_fit.ts";
import { levelFor } from "../model/tiles.ts";
import { marks } from "../model/times.ts";
import type { ChosenGap } from "../model/url_codec.ts";
import { bookmarks } from "../state/bookmarks.ts";
import { isPictured } from "../state/clocks.ts";
import { collectivePeers, startCollectivePeers } from "../state/collective_peers.ts";
import { pathKind, paths, startPaths } from "../state/critical_paths.ts";
import { type Gap, idleGaps } from "../state/idle_gaps.ts";
import { area, detail, hover, hoverFacts, search, selectedGap, selection } from "../state/selection.ts";
import { type Source, sourceOf, sources, steps, whole } from "../state/sources.ts";
import { TileClient } from "../state/tile_client.ts";
import { arrivals, main, reload } from "../state/traces.ts";
import {
  type CounterValue,
  destination,
  draft,
  geometry,
  isWaiting,
  lastFrame,
  pointer,
  scroll,
  scrollTarget,
  scrollTo,
  size,
  trackLayout,
  viewport,
} from "../state/viewport_state.ts";

const RULER_MARKS = 104; // pixels from one to the next, at least

/** A box under the pointer, and where it is. */
export interface PointerTarget {
  line: Line;
  source: Source;
  hit: Hit | null;
}

export class Renderer {
  readonly motion = new Motion();
  readonly client = new TileClient(
    // The first whole picture doesn't wait for the next frame.
    () => isPictured.peek() || !this.client.isComplete ? this.invalidate() : this.drawNow(),
    reload,
  );
  private readonly pen: CanvasRenderingContext2D;
  private readonly fitter: TextFitter;
  private readonly body: TrackPainter;
  private readonly head: HeaderPainter;
  private readonly overlay: OverlayPainter;
  private readonly counters: CounterPainter;
  private readonly colors = new WeakMap<Labels, LabelColors>();
  private palette: Palette | null = null;
  private frame = 0;
  /** Whether a new size has emptied the canvas. */
  private isBlank = true;
  private ends: (() => void)[] = [];

  constructor(readonly canvas: HTMLCanvasElement, readonly headCanvas: HTMLCanvasElement) {
    const pen = this.pen = canvas.getContext("2d", { alpha: false })!;
    const headPen = headCanvas.getContext("2d", { alpha: false })!;
    this.fitter = new TextFitter((text) => {
      headPen.font = FONT;
      return headPen.measureText(text).width;
    });
    const fit = (text: string, room: number) => this.fitter.fit(text, room);
    this.body = new TrackPainter(pen, this.client);
    this.head = new HeaderPainter(headPen, fit);
    this.overlay = new OverlayPainter(pen, fit);
    this.counters = new CounterPainter(pen, this.client);
  }

  /** Starts drawing. */
  start() {
    const themed = new MutationObserver(() => {
      this.palette = null;
      this.invalidate();
    });
    themed.observe(document.documentElement, { attributeFilter: ["style"] });
    const sized = new ResizeObserver(() => {
      this.resize();
      if (this.isBlank) this.drawNow(); // the next frame would come after a blank one
    });
    sized.observe(this.canvas);
    const watched = effect(() => {
      for (
        const one of [
          viewport,
          trackLayout,
          sources, // clocks that come last move a worker, and nothing else changes
          scroll,
          size,
          selection,
          detail,
          area,
          bookmarks,
          draft,
          search,
          hover,
          hoverFacts,
          arrivals,
          idleGaps,
          selectedGap,
          collectivePeers,
          paths,
        ]
      ) {
        void one.value;
      }
      this.invalidate();
    });
    const goes = effect(() => {
      if (!destination.value) return;
      this.motion.go(viewport.peek(), destination.value, performance.now());
      this.invalidate();
    });
    const scrolls = effect(() => {
      if (!scrollTarget.value) return;
      const { source, summary } = scrollTarget.value;
      queueMicrotask(() => (scroll.value = scrollTo(source, summary)));
    });
    const moves = effect(() => {
      void [viewport.value, trackLayout.value, sources.value, scroll.value];
      hover.value = null; // something else is under the pointer now
    });
    this.ends = [
      startCollectivePeers(),
      startPaths(),
      watched,
      moves,
      goes,
      scrolls,
      () => themed.disconnect(),
      () => sized.disconnect(),
    ];
    this.resize();
  }

  stop() {
    this.ends.forEach((end) => end());
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  /** Follows the size, and asks for the tiles of the visible tracks before they are drawn, which takes a while. */
  private resize() {
    const screen = devicePixelRatio || 1, { clientWidth: width, clientHeight: height } = this.canvas;
    const pixels = (length: number) => Math.max(1, Math.round(length * screen));
    const wide = pixels(width), high = pixels(height);
    if (!this.isBlank && this.canvas.width === wide && this.canvas.height === high) return;
    this.canvas.width = this.headCanvas.width = wide;
    this.canvas.height = high;
    this.headCanvas.height = pixels(HEAD_HEIGHT);
    this.isBlank = true;
    size.value = { width, height };
    for (const { line: { band } } of visibleLines(geometry())) {
      const source = band && sourceOf(band.source);
      if (source) this.pieces(source, band.track);
    }
    this.client.end();
  }

  private drawNow() {
    cancelAnimationFrame(this.frame);
    this.draw(performance.now());
  }

  invalidate() {
    this.frame ||= requestAnimationFrame((now) => this.draw(now));
  }

  /** The time that zooming keeps where it is: that under the pointer, else the middle. */
  get anchor(): number {
    const { x, isOver } = pointer.peek();
    return timeAt(geometry(), isOver ? x : size.peek().width / 2);
  }

  private draw(now: number) {
    if (this.motion.isMoving) viewport.value = this.motion.step(viewport.peek(), whole.peek(), this.anchor, now);
    this.frame = 0;
    const list = sources.peek();
    if (!list.length || !size.peek().width) return;
    this.palette ??= paletteOf(this.canvas.parentElement!, list[0]!.meta.categories);
    const place = geometry();
    const marked = marks(place.range.from, place.range.to, nsPerPixel(place) * RULER_MARKS);
    this.client.begin();
    this.drawBody(place, list, marked.map(({ at }) => at));
    this.client.end();
    this.drawHead(place, marked);
    this.isBlank = false;
    lastFrame.boxes = this.body.boxes;
    isWaiting.value = !this.client.isComplete || !list.every(({ labels }) => labels.isComplete);
    if (this.client.isComplete) isPictured.value = true;
    if (this.motion.isMoving) this.invalidate();
  }

  private drawBody(place: Geometry, list: Source[], marked: number[]) {
    const palette = this.palette!;
    const colors = new Map(list.map((source) => [source.id, this.colorsOf(source)]));
    for (const one of colors.values()) one.follow(palette, arrivals.peek());
    const screen = devicePixelRatio || 1;
    const ratio = this.motion.isMoving ? Math.min(1, screen) : screen;
    const style = { palette, colors, fitter: this.fitter };
    const shape = { ratio, screen, find: search.peek()?.text ?? "", steps: steps.peek(), marked };
    this.body.draw(place, list, style, shape);
    this.counters.draw(place, list, palette);
    this.overlay.rules(place, palette);
    this.overlay.gaps(place, list, idleGaps.peek(), selectedGap.peek(), palette);
    const chosen = draft.peek() ?? area.peek();
    for (const mark of bookmarks.peek()) this.overlay.bookmark(place, mark, palette);
    if (chosen) this.overlay.area(place, chosen, palette);
    this.drawPaths(place, list, palette);
    this.drawSelection(place, list, palette);
  }

  private drawPaths(place: Geometry, list: Source[], palette: Palette) {
    const pathsBySource = list.map((source): [Source, PathSegment[]] => [source, paths.peek()[source.id] ?? []]);
    const lines = pathKind.peek() === "across"
      ? [barsAcross(place, pathsBySource as [Source, CrossRankSegment[]][])]
      : pathsBySource.map(([source, segments]) => barsOf(place, source, segments));
    for (const bars of lines) if (bars.length) drawPath(this.pen, place, bars, palette);
  }

  private colorsOf({ labels }: Source): LabelColors {
    const colors = this.colors.get(labels) ?? new LabelColors(labels);
    this.colors.set(labels, colors);
    return colors;
  }

  private drawSelection(place: Geometry, list: Source[], palette: Palette) {
    const chosen = selection.peek(), facts = detail.peek(), over = hover.peek();
    const overFacts = hoverFacts.peek();
    const isOther = (source: string, slice: number) => chosen?.source !== source || chosen.slice !== slice;
    for (const { from, to } of over && overFacts?.arrows.slice(0, 60) || []) {
      for (const summary of [from, to]) {
        this.overlay.outline(place, list, { source: over!.source, summary }, css(palette.accent, 0.8), 1.5);
      }
    }
    if (over && isOther(over.source, over.slice)) {
      this.overlay.outline(
        place,
        list,
        { source: over.source, summary: overFacts ?? over },
        css(palette.text, 0.55),
        1,
      );
    }
    this.overlay.peers(place, list, collectivePeers.peek(), css(palette.accent));
    if (!chosen) return;
    const selectedFacts = facts?.state === "ready" && facts.slice === chosen.slice ? facts : null;
    if (selectedFacts) {
      const curves = selectedFacts.arrows.map((arrow) => ({ ...arrow, source: chosen.source }));
      this.overlay.arrows(place, list, curves, palette);
    }
    const summary: Outline["summary"] | null = selectedFacts ??
      (over && !isOther(over.source, over.slice) ? over : null);
    if (summary) this.overlay.outline(place, list, { source: chosen.source, summary }, css(palette.text), 2);
  }

  private drawHead({ width, range }: Geometry, marked: HeadState["marked"]) {
    const own = sourceOf(main.peek()) ?? sources.peek()[0]!;
    const [from, to] = own.meta.window.map((time) => time + own.shift_ns) as [number, number];
    const answer = search.peek()?.answers[own.id];
    const chosen = draft.peek() ?? area.peek();
    const state = { width, range, whole: whole.peek(), window: { from, to }, activity: own.meta.activity };
    const matches = answer?.state === "ready" ? answer.histogram : null;
    this.head.draw({ ...state, matches, steps: steps.peek(), marked, chosen }, this.palette!, devicePixelRatio || 1);
  }

  /** The slice at a point of the canvas; null where no track is. */
  at(x: number, y: number): PointerTarget | null {
    const place = geometry();
    const target = lineAt(place, y);
    const source = target?.line.band && sourceOf(target.line.band.source);
    if (!target || !source) return null;
    const { line, top } = target;
    const time = timeAt(place, x) - source.shift_ns;
    const pieces = this.pieces(source, line.band!.track);
    return { line, source, hit: boxAt(line.band!, pieces, y - top - line.band!.top, time, nsPerPixel(place)) };
  }

  /** The idle gap of a device at a point, behind the slices. */
  gapAt({ source, line }: PointerTarget, x: number): Gap & ChosenGap | null {
    if (line.band!.part !== "work") return null;
    const device = source.meta.tracks[line.band!.track]!.device ?? -1;
    const time = timeAt(geometry(), x) - source.shift_ns;
    const gap = idleGaps.peek()[source.id]?.get(device)
      ?.find(({ start_ns, dur_ns }) => start_ns <= time && time < start_ns + dur_ns);
    return gap ? { ...gap, source: source.id, device } : null;
  }

  /** The counter at a point and its value there. */
  counterAt(x: number, y: number): CounterValue | null {
    const place = geometry();
    const curve = lineAt(place, y)?.line.curve;
    const source = curve && sourceOf(curve.source);
    if (!source) return null;
    const value = valueAt(curvePieces(this.client, place, source, curve.counter), timeAt(place, x) - source.shift_ns);
    return value && { counter: curve.counter, ...value };
  }

  /** The time at a point; that of a slice's edge in the row there, if one is near. */
  edgeAt(x: number, y: number): Edge & { source: string } {
    const place = geometry();
    const time = timeAt(place, x);
    const target = lineAt(place, y);
    const band = target?.line.band, source = band && sourceOf(band.source);
    if (!target || !source) return { time, slice: null, isEnd: false, source: "" };
    const lanes = lanesAt(band, y - target.top - band.top);
    const within = SNAP_PIXELS * nsPerPixel(place);
    const edge = nearestEdge(this.pieces(source, band.track), lanes, time - source.shift_ns, within);
    return { ...edge, time: edge.time + source.shift_ns, source: source.id };
  }

  /** What is drawn of a track. */
  pieces(source: Source, track: number) {
    const { range, width } = geometry();
    const level = levelFor((range.to - range.from) / (width * (devicePixelRatio || 1)));
    return this.client.boxes(source).pieces(track, level, range.from - source.shift_ns, range.to - source.shift_ns);
  }
}

/** The distance in pixels at which the pointer snaps to an edge. */
const SNAP_PIXELS = 7;
