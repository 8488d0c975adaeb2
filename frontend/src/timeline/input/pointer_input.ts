/** The mouse on the canvas: points, selects, drags areas, pans, zooms. */

import type { SliceFacts, SliceSummary } from "../../api/timeline_types.ts";
import { GRIP, RULER, STEPS, STRIP, stripTime, stripX } from "../draw/header.ts";
import type { Renderer } from "../draw/renderer.ts";
import { type Geometry, isPinned, nsPerPixel, timeAt, topOf } from "../model/geometry.ts";
import { clampRange, padRange, shiftRange, shiftWithin, stepOf, zoomRange } from "../model/ranges.ts";
import type { Area, Range, TrackPlace } from "../model/url_codec.ts";
import { chooseStep, compareStep } from "../state/bookmarks.ts";
import { hover, select, selectGap, setArea } from "../state/selection.ts";
import { sourceOf, steps, whole } from "../state/sources.ts";
import { loadFrom } from "../state/traces.ts";
import {
  counterAtPointer,
  draft,
  geometry,
  mode,
  pointer,
  scroll,
  size,
  trackLayout,
  viewport,
  zoomToRange,
} from "../state/viewport_state.ts";

const DRAG_THRESHOLD = 4; // pixels until a press is a drag
const ZOOM_PER_WHEEL = 0.0022;
const EDGE = 16; // pixels at the right, where the pointer can't leave the window, that count as beyond the edge
const SCROLL_PER_FRAME = 0.25; // of how far the pointer is beyond an edge

interface Drag {
  move: (event: PointerEvent, end: boolean) => void;
  /** Whether time passes, and tracks scroll, while the pointer is beyond an edge. */
  scrolls?: "across" | "both";
}

const limit = (): number =>
  Math.max(0, trackLayout.peek().height + trackLayout.peek().pinnedHeight - size.peek().height);

/** Scrolls the tracks, as far as there are any. */
export const scrollBy = (by: number) => (scroll.value = Math.max(0, Math.min(limit(), scroll.peek() + by)));

export function panTo(range: Range) {
  viewport.value = clampRange(range, whole.peek());
}

/** The tracks between two heights, also those out of sight; pinned ones hide what is scrolled below them. */
function tracksBetween(place: Geometry, a: number, b: number): TrackPlace[] {
  const { lines, pinned, pinnedHeight } = place.layout, shown = Math.max(b, pinnedHeight);
  return [...lines, ...pinned].flatMap((line) => {
    const { band, height } = line, at = topOf(place, line), end = isPinned(place, line) ? b : shown;
    const isBetween = band && at < Math.max(a, end) && at + height > Math.min(a, end);
    return isBetween ? [{ source: band.source, track: band.track }] : [];
  });
}

/** How far a wheel is turned, across and down, in pixels. */
export function wheelPixels({ deltaX, deltaY, deltaMode }: WheelEvent): [across: number, down: number] {
  const lines = deltaMode === 1 ? 16 : deltaMode === 2 ? 400 : 1;
  return [deltaX * lines, deltaY * lines];
}

export class PointerInput {
  private drag: Drag | null = null;
  private press: { x: number; y: number } | null = null;
  private last = { x: 0, y: 0 };
  private frame = 0;

  constructor(private readonly view: Renderer) {}

  /** Starts listening; returns a function that stops. */
  listen(): () => void {
    const { canvas, headCanvas } = this.view;
    const stop = new AbortController();
    const on = (target: HTMLElement, name: string, act: (event: never) => void) =>
      target.addEventListener(name, act as EventListener, { signal: stop.signal, passive: false });
    on(canvas, "wheel", (event: WheelEvent) => this.wheel(event));
    on(headCanvas, "wheel", (event: WheelEvent) => this.wheel(event));
    for (const target of [canvas, headCanvas]) {
      on(target, "pointerdown", (event: PointerEvent) => this.down(event, target === headCanvas));
      on(target, "pointermove", (event: PointerEvent) => this.move(event, target === headCanvas));
      on(target, "pointerup", (event: PointerEvent) => this.up(event, target === headCanvas));
      on(target, "pointercancel", () => this.cancel());
      on(target, "pointerleave", () => this.leave());
    }
    on(canvas, "dblclick", () => this.open());
    on(headCanvas, "dblclick", (event: MouseEvent) => this.openStep(event));
    return () => stop.abort();
  }

  private wheel(event: WheelEvent) {
    const [across, down] = wheelPixels(event);
    event.preventDefault();
    this.view.motion.stop();
    if (event.ctrlKey || event.metaKey) {
      panTo(zoomRange(viewport.peek(), Math.exp(down * ZOOM_PER_WHEEL), timeAt(geometry(), event.offsetX)));
    } else if (event.shiftKey || Math.abs(across) > Math.abs(down)) {
      panTo(shiftRange(viewport.peek(), (across || down) * nsPerPixel(geometry())));
    } else scrollBy(down);
    this.point(event.offsetX, event.offsetY);
  }

  private down(event: PointerEvent, isHead: boolean) {
    if (event.button > 1) return;
    (event.target as HTMLElement).setPointerCapture(event.pointerId);
    this.view.canvas.focus({ preventScroll: true });
    this.view.motion.stop();
    this.press = this.last = { x: event.offsetX, y: event.offsetY };
    this.drag = isHead ? this.headDrag(event) : this.bodyDrag(event);
  }

  private headDrag({ offsetX, offsetY }: PointerEvent): Drag {
    if (offsetY < STEPS.top - 2) return this.windowDrag(offsetX);
    const from = timeAt(geometry(), offsetX);
    return {
      move: ({ offsetX: x }, end) => this.areaTo(from, timeAt(geometry(), x), [], end),
      scrolls: "across",
    };
  }

  /** In the strip: an edge of the window, the window, or a new one. */
  private windowDrag(x: number): Drag {
    const state = { width: size.peek().width, whole: whole.peek() };
    const before = viewport.peek(), startTime = stripTime(state, x);
    const [left, right] = [stripX(state, before.from), stripX(state, before.to)];
    const free = x < left - GRIP || x > right + GRIP || right - left < 3 * GRIP;
    const edge = free ? "" : Math.abs(x - left) < GRIP ? "from" : Math.abs(x - right) < GRIP ? "to" : "";
    const move = ({ offsetX }: PointerEvent) => {
      const time = stripTime(state, offsetX);
      if (edge === "from") panTo({ from: Math.min(time, before.to - 1), to: before.to });
      else if (edge === "to") panTo({ from: before.from, to: Math.max(time, before.from + 1) });
      else if (!free) panTo(shiftRange(before, time - startTime));
      else panTo({ from: Math.min(startTime, time), to: Math.max(startTime, time) });
    };
    return { move };
  }

  private bodyDrag(event: PointerEvent): Drag {
    const before = viewport.peek(), scrolled = scroll.peek(), { offsetX, offsetY } = event;
    if (event.shiftKey || event.button === 1 || mode.peek() === "pan") {
      return {
        move: ({ offsetX: x, offsetY: y }) => {
          panTo(shiftRange(before, -(x - offsetX) * ((before.to - before.from) / size.peek().width)));
          scrollBy(scrolled - (y - offsetY) - scroll.peek());
        },
      };
    }
    if (mode.peek() === "zoom") {
      const around = timeAt(geometry(), offsetX);
      return { move: ({ offsetY: y }) => panTo(zoomRange(before, Math.exp((y - offsetY) * 0.01), around)) };
    }
    return { move: this.areaDrag(event), scrolls: "both" };
  }

  /** Selects the time and the tracks between where the pointer was and where it is. */
  private areaDrag({ offsetX, offsetY }: PointerEvent): Drag["move"] {
    const from = this.view.edgeAt(offsetX, offsetY), scrolled = scroll.peek();
    const isOnPinned = offsetY < geometry().layout.pinnedHeight;
    return ({ offsetX: x, offsetY: y }, end) => {
      const to = this.view.edgeAt(x, y), start = isOnPinned ? offsetY : offsetY + scrolled - scroll.peek();
      const tracks = tracksBetween(geometry(), start, y);
      this.areaTo(from.time, to.time, tracks, false);
      if (end) void Promise.all([exact(from), exact(to)]).then(([a, b]) => this.areaTo(a, b, tracks, true));
    };
  }

  /** Scrolls, frame by frame, while the pointer is beyond an edge and there is more to come. */
  private scrollBeyond(event: PointerEvent) {
    cancelAnimationFrame(this.frame);
    const { width, height } = size.peek(), { offsetX, offsetY } = event;
    const beyond = (at: number, most: number) => SCROLL_PER_FRAME * (Math.min(at, 0) + Math.max(at - most, 0));
    const across = beyond(offsetX, width - EDGE), down = this.drag?.scrolls === "both" ? beyond(offsetY, height) : 0;
    if (!this.drag?.scrolls || !(across || down)) return;
    this.frame = requestAnimationFrame(() => {
      const { range, scroll: top } = geometry();
      const next = shiftWithin(range, across * nsPerPixel(geometry()), whole.peek());
      if (next.from !== range.from) viewport.value = next;
      if (scrollBy(down) === top && next.from === range.from) return;
      this.drag?.move(event, false);
      this.scrollBeyond(event);
    });
  }

  private areaTo(a: number, b: number, tracks: TrackPlace[], end: boolean) {
    const { from, to } = whole.peek(), times = [a, b].map((time) => Math.min(Math.max(time, from), to));
    const chosen: Area = { from: Math.min(...times), to: Math.max(...times), tracks };
    draft.value = end ? null : chosen;
    if (end && chosen.to - chosen.from >= 1) setArea(chosen);
  }

  private move(event: PointerEvent, isHead: boolean) {
    this.last = { x: event.offsetX, y: event.offsetY };
    if (
      this.press && Math.abs(event.offsetX - this.press.x) + Math.abs(event.offsetY - this.press.y) >= DRAG_THRESHOLD
    ) {
      this.press = null;
      hover.value = null;
    }
    if (this.drag && !this.press) {
      this.drag.move(event, false);
      this.scrollBeyond(event);
    }
    if (this.drag) return;
    pointer.value = { x: event.offsetX, y: isHead ? -1 : event.offsetY, isOver: true };
    if (isHead) this.headCursor(event);
    else this.point(event.offsetX, event.offsetY);
  }

  private headCursor({ offsetX, offsetY, target }: PointerEvent) {
    hover.value = null;
    const state = { width: size.peek().width, whole: whole.peek() };
    const edges = [viewport.peek().from, viewport.peek().to].map((time) => Math.abs(stripX(state, time) - offsetX));
    const isStrip = offsetY < STRIP.top + STRIP.height;
    const cursor = isStrip
      ? (Math.min(...edges) < GRIP ? "ew-resize" : "grab")
      : offsetY < RULER.top
      ? "pointer"
      : "text";
    (target as HTMLElement).style.cursor = cursor;
  }

  private up(event: PointerEvent, isHead: boolean) {
    const { drag, press } = this;
    this.stop();
    if (!drag) return;
    if (!press) return drag.move(event, true);
    if (isHead) this.clickHead(event);
    else this.click(event);
  }

  private stop() {
    cancelAnimationFrame(this.frame);
    this.drag = this.press = null;
  }

  private cancel() {
    this.stop();
    draft.value = null;
  }

  private leave() {
    if (this.drag) return;
    pointer.value = { ...pointer.peek(), isOver: false };
    hover.value = counterAtPointer.value = null;
  }

  private clickHead({ offsetX, offsetY, shiftKey }: PointerEvent) {
    if (offsetY < STEPS.top - 2) {
      const { from, to } = viewport.peek();
      const middle = stripTime({ width: size.peek().width, whole: whole.peek() }, offsetX);
      return zoomToRange({ from: middle - (to - from) / 2, to: middle + (to - from) / 2 });
    }
    const step = this.stepAt(offsetX, offsetY);
    if (!step) setArea(null);
    else (shiftKey ? compareStep : chooseStep)(step);
  }

  private stepAt(x: number, y: number): Range | null {
    if (y < STEPS.top || y >= RULER.top) return null;
    const step = stepOf(steps.peek(), timeAt(geometry(), x));
    return step ? { from: step.start_ns, to: step.end_ns } : null;
  }

  private openStep({ offsetX, offsetY }: MouseEvent) {
    const step = this.stepAt(offsetX, offsetY);
    if (step) zoomToRange(padRange(step));
    else if (offsetY < STEPS.top - 2) zoomToRange(whole.peek());
  }

  private click(event: PointerEvent) {
    const target = this.view.at(event.offsetX, event.offsetY);
    if (!target?.hit) {
      const gap = target && this.view.gapAt(target, event.offsetX);
      if (gap) return selectGap(gap);
      select(null);
      if (!event.shiftKey) setArea(null);
      return;
    }
    this.point(event.offsetX, event.offsetY);
    select({ source: target.source.id, slice: target.hit.slice });
  }

  /** Zooms to the double-clicked slice or gap. */
  private open() {
    const target = this.view.at(this.last.x, this.last.y);
    const box = target && (target.hit ?? this.view.gapAt(target, this.last.x));
    if (!box) return;
    const { start_ns, dur_ns } = box, { shift_ns } = target.source;
    zoomToRange(padRange({ from: start_ns + shift_ns, to: start_ns + dur_ns + shift_ns }, 0.1));
  }

  /** Updates the slice and the counter under the pointer. */
  private point(x: number, y: number) {
    const target = this.view.at(x, y);
    counterAtPointer.value = this.view.counterAt(x, y);
    this.view.canvas.style.cursor = mode.peek() === "pan" ? "grab" : target?.hit ? "pointer" : "default";
    const before = hover.peek();
    if (!target?.hit) return void (before && (hover.value = null));
    const { hit, source, line } = target;
    if (before?.source === source.id && before.slice === hit.slice) return;
    const category = source.meta.categories[source.labels.categories[hit.label]!] ?? "";
    const summary: SliceSummary = { ...hit, name: source.labels.text(hit.label), category, track: line.band!.track };
    hover.value = { ...summary, source: source.id, count: hit.count };
  }
}

/** The exact time of an edge from the server: a drawn box is only as exact as its pixel. */
async function exact({ time, slice, isEnd, source }: ReturnType<Renderer["edgeAt"]>): Promise<number> {
  const of = sourceOf(source);
  if (!of || slice === null) return Math.round(time);
  const facts = await loadFrom<SliceFacts>(of, "timeline/slice", { slice: String(slice) });
  if (facts.state !== "ready") return Math.round(time);
  return facts.start_ns + (isEnd ? facts.dur_ns : 0) + of.shift_ns;
}

/** The time of a slice on the common clock. */
export function rangeOf(source: string, { start_ns, dur_ns }: SliceSummary): Range {
  const shift = sourceOf(source)?.shift_ns ?? 0;
  return { from: start_ns + shift, to: start_ns + dur_ns + shift };
}
