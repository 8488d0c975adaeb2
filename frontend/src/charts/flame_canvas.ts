/** A flame graph on a canvas: only what is in sight is drawn, so that any number of boxes moves smoothly. */

import type { CallTree } from "./call_tree.ts";
import { type Boxes, lastBefore } from "./flame_layout.ts";
import { cutText, textWidth } from "../ui/measure.ts";

export const ROW = 20;
const TYPE = 12;
const MIN_LABELED = 28;
const MIN_BOX = 1.5; // pixels: neighbors that are narrower are drawn as one
const ZOOM_PER_WHEEL = 0.004;
const ZOOM_MS = 160;

/** Calls that grow down from their line, or up. */
export interface Part {
  tree: CallTree;
  boxes: Boxes;
  line: number;
  isUpward: boolean;
}
export interface Scene {
  parts: Part[];
  lines: number;
  total: number;
}
/** A box by its first call, which stays the same when chains open. */
export interface BoxRef {
  part: number;
  box: number;
}

/** What boxes look like. */
export interface Look {
  labelOf: (part: Part, box: number) => string;
  /** CSS colors, and which of them a row has. */
  colors: string[];
  colorOf: (row: number) => number;
  /** The rows that match the search; null without one. */
  matches: ((row: number) => boolean) | null;
}

interface Inks {
  fills: string[];
  text: string;
  accent: string;
  run: string;
}

/** Reads the theme's colors where an element stands, in a form that canvases take. */
export function readColors(element: HTMLElement, colors: string[]): string[] {
  const probe = element.appendChild(document.createElement("i"));
  const values = colors.map((color) => {
    probe.style.color = color;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  return values;
}

function inksOf(element: HTMLElement, colors: string[]): Inks {
  const [text, accent, run, ...fills] = readColors(element, [
    "var(--text)",
    "var(--accent)",
    "color-mix(in srgb, var(--other) 60%, var(--surface))",
    ...colors,
  ]);
  return { fills, text: text!, accent: accent!, run: run! };
}

/** Empties a canvas of this size in CSS pixels, and returns what draws on it. */
export function clearCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio, size = [Math.round(width * ratio), Math.round(height * ratio)] as const;
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    [canvas.width, canvas.height] = size;
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const pen = canvas.getContext("2d")!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `${TYPE}px system-ui, sans-serif`;
  pen.textBaseline = "middle";
  return pen;
}

export class FlameView {
  /** The part of the scene's width that is in sight. */
  from = 0;
  to = 1;
  focus: BoxRef | null = null;
  hover: BoxRef | null = null;
  private scene: Scene = { parts: [], lines: 0, total: 0 };
  private look: Look | null = null;
  private inks: Inks | null = null; // read again when the theme changes
  private frame = 0;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly box: HTMLElement) {}

  /** Starts following scrolling, resizing and the theme; returns a function that stops. */
  start(): () => void {
    const draw = () => this.draw();
    const sized = new ResizeObserver(draw);
    const themed = new MutationObserver(() => {
      this.inks = null;
      draw();
    });
    sized.observe(this.box);
    themed.observe(document.documentElement, { attributeFilter: ["style"] });
    this.box.addEventListener("scroll", draw);
    this.canvas.addEventListener("wheel", this.wheel, { passive: false });
    return () => {
      sized.disconnect();
      themed.disconnect();
      cancelAnimationFrame(this.frame);
    };
  }

  show(scene: Scene, look: Look) {
    if (scene.total !== this.scene.total) [this.from, this.to] = [0, scene.total];
    this.scene = scene;
    this.look = look;
    this.inks = null;
    this.draw();
  }

  /** Draws with the next frame. */
  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  /** Shows a range, moving there. */
  zoomTo(from: number, to: number) {
    const begin = performance.now(), [oldFrom, oldTo] = [this.from, this.to];
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = (now: number) => {
      const part = isStill ? 1 : Math.min(1, Math.max(0, (now - begin) / ZOOM_MS));
      const eased = 1 - (1 - part) ** 3;
      this.from = oldFrom + (from - oldFrom) * eased;
      this.to = oldTo + (to - oldTo) * eased;
      this.paint();
      if (part < 1) this.frame = requestAnimationFrame(step);
    };
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(step);
  }

  /** Zooms by a factor, keeping what is at `x` pixels in its place. */
  zoomAt(x: number, factor: number) {
    const at = this.from + (x / this.box.clientWidth) * (this.to - this.from);
    const whole = this.scene.total;
    const length = Math.min(whole, Math.max(whole * 1e-9, (this.to - this.from) * factor));
    this.moveTo(at - (at - this.from) * (length / (this.to - this.from)), length);
  }

  /** Zooms by a factor around the focused box, or the middle. */
  zoomBy(factor: number) {
    const { left, width } = this.scene.parts[this.focus?.part ?? 0]!.boxes, length = this.to - this.from;
    const at = this.focus ? left[this.focus.box]! + width[this.focus.box]! / 2 : this.from + length / 2;
    this.zoomAt(((at - this.from) / length) * this.box.clientWidth, factor);
  }

  pan(pixels: number) {
    const length = this.to - this.from;
    this.moveTo(this.from + (pixels / this.box.clientWidth) * length, length);
  }

  private moveTo(from: number, length: number) {
    this.from = Math.max(0, Math.min(from, this.scene.total - length));
    this.to = this.from + length;
    this.draw();
  }

  private readonly wheel = (event: WheelEvent) => {
    const pixels = event.deltaMode === 1 ? 16 : 1;
    const isAcross = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey) this.zoomAt(event.offsetX, Math.exp(event.deltaY * pixels * ZOOM_PER_WHEEL));
    else if (isAcross) this.pan((event.deltaX || event.deltaY) * pixels);
    else return; // scrolls the box
    event.preventDefault();
  };

  /** The box at a point of the canvas. */
  boxAt(x: number, y: number): BoxRef | null {
    const line = Math.floor((y + this.box.scrollTop) / ROW);
    const at = this.from + (x / this.box.clientWidth) * (this.to - this.from);
    for (const [part, { boxes, line: first, isUpward }] of this.scene.parts.entries()) {
      const level = isUpward ? first - line : line - first;
      if (level < Number(isUpward) || level + 1 >= boxes.starts.length) continue;
      const box = lastBefore(boxes, level, at);
      if (box >= 0 && at < boxes.left[box]! + boxes.width[box]!) return { part, box };
    }
    return null;
  }

  /** Scrolls to a line. */
  reveal(line: number) {
    const { scrollTop, clientHeight } = this.box;
    if (line * ROW < scrollTop) this.box.scrollTop = line * ROW;
    else if ((line + 1) * ROW > scrollTop + clientHeight) this.box.scrollTop = (line + 1) * ROW - clientHeight;
  }

  private paint() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!this.look || !width || !height) return;
    const pen = clearCanvas(this.canvas, width, height);
    const inks = this.inks ??= inksOf(this.box, this.look.colors);
    const [first, last] = [Math.floor(this.box.scrollTop / ROW), Math.ceil((this.box.scrollTop + height) / ROW)];
    this.scene.parts.forEach((part, number) => {
      const { boxes: { starts }, line, isUpward } = part;
      for (let level = Number(isUpward); level + 1 < starts.length; level++) {
        const at = isUpward ? line - level : line + level;
        if (at >= first && at < last) this.paintLevel(pen, inks, part, number, level, at * ROW - this.box.scrollTop);
      }
    });
  }

  private paintLevel(pen: CanvasRenderingContext2D, inks: Inks, part: Part, number: number, level: number, y: number) {
    const { tree: { row }, boxes } = part, { left, width, starts } = boxes, look = this.look!;
    const room = this.box.clientWidth, scale = room / (this.to - this.from);
    const isMarked = (ref: BoxRef | null, box: number) => ref !== null && ref.part === number && ref.box === box;
    let run = NaN, runEnd = NaN;
    const endRun = () => {
      if (run <= runEnd) {
        pen.fillStyle = inks.run;
        pen.fillRect(run, y, Math.max(1, runEnd - run), ROW - 1);
      }
      run = NaN;
    };
    const first = Math.max(starts[level]!, lastBefore(boxes, level, this.from));
    for (let box = first; box < starts[level + 1]! && left[box]! < this.to; box++) {
      const x = (left[box]! - this.from) * scale, wide = width[box]! * scale;
      if (wide < MIN_BOX) {
        if (!(x <= runEnd + 0.5 && run === run)) {
          endRun();
          run = x;
        }
        runEnd = x + wide;
        continue;
      }
      endRun();
      const [start, end] = [Math.max(0, x), Math.min(room, x + wide - 1)];
      if (end <= start) continue;
      const own = row[boxes.node[box]!]!, isMatch = look.matches === null ? null : look.matches(own);
      pen.globalAlpha = isMatch === false ? 0.3 : 1;
      pen.fillStyle = inks.fills[look.colorOf(own)]!;
      pen.fillRect(start, y, end - start, ROW - 1);
      if (isMatch || isMarked(this.focus, box) || isMarked(this.hover, box)) {
        pen.strokeStyle = isMarked(this.hover, box) ? inks.text : inks.accent;
        pen.lineWidth = isMarked(this.focus, box) ? 3 : isMatch ? 2 : 1;
        pen.strokeRect(start + 1, y + 1, end - start - 2, ROW - 3);
      }
      if (end - start > MIN_LABELED) this.paintLabel(pen, inks, look.labelOf(part, box), start, y, end - start - 6);
      pen.globalAlpha = 1;
    }
    endRun();
  }

  private paintLabel(pen: CanvasRenderingContext2D, inks: Inks, name: string, x: number, y: number, room: number) {
    const text = cutText(name, room, TYPE);
    if (textWidth(text, TYPE) > room) return;
    pen.fillStyle = inks.text;
    pen.fillText(text, x + 4, y + ROW / 2);
  }
}
