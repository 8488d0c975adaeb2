/** Draws the header: the overview strip with the visible window, the steps, and the ruler. */

import { FONT } from "./tracks.ts";
import type { Step } from "../../api/timeline_types.ts";
import { css, mixed, type Palette } from "./colors.ts";
import type { Range } from "../model/url_codec.ts";
import { stepLabels } from "../model/ranges.ts";
import { duration } from "../model/times.ts";

export const STRIP = { top: 4, height: 34 };
export const STEPS = { top: 44, height: 18 };
export const RULER = { top: 62, height: 18 };
export const HEAD_HEIGHT = 80;

/** The distance in pixels at which the pointer grabs an edge of the window. */
export const GRIP = 6;

export interface HeadState {
  width: number;
  range: Range;
  whole: Range;
  /** The main source's window, whose activity is drawn. */
  window: Range;
  activity: { device: number[] | null; host: number[] | null };
  /** How many search results begin in each part of the window; null without a search. */
  matches: number[] | null;
  steps: Step[];
  marked: { at: number; text: string }[];
  chosen: Range | null;
}

export const stripX = ({ width, whole }: Pick<HeadState, "width" | "whole">, time: number): number =>
  ((time - whole.from) / (whole.to - whole.from)) * width;

export const stripTime = ({ width, whole }: Pick<HeadState, "width" | "whole">, x: number): number =>
  whole.from + (x / width) * (whole.to - whole.from);

export class HeaderPainter {
  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly fit: (text: string, room: number) => string,
  ) {}

  draw(state: HeadState, palette: Palette, screen: number) {
    const { pen } = this;
    pen.setTransform(screen, 0, 0, screen, 0, 0);
    pen.fillStyle = css(palette.surface);
    pen.fillRect(0, 0, state.width, HEAD_HEIGHT);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.strip(state, palette);
    this.steps(state, palette);
    this.ruler(state, palette);
  }

  private strip(state: HeadState, palette: Palette) {
    const { pen } = this;
    const { device, host } = state.activity;
    const [kernel, operator] = [palette.strip.device, palette.strip.host];
    pen.fillStyle = css(palette.panel);
    pen.fillRect(0, STRIP.top, state.width, STRIP.height);
    const half = STRIP.height / 2;
    if (device) this.bars(state, device, STRIP.top, half - 1, css(kernel));
    if (host) {
      this.bars(state, host, device ? STRIP.top + half : STRIP.top, device ? half : STRIP.height, css(operator));
    }
    if (state.matches) this.matches(state, state.matches, palette);
    this.window(state, palette);
  }

  /** Shares of equal parts of the window as bars that touch. */
  private bars(state: HeadState, shares: number[], top: number, height: number, color: string) {
    const { pen } = this;
    const first = stripX(state, state.window.from), wide = stripX(state, state.window.to) - first;
    pen.fillStyle = color;
    shares.forEach((share, i) => {
      if (!(share > 0)) return;
      const high = Math.max(1, share * height);
      const left = first + (i / shares.length) * wide;
      pen.fillRect(left, top + height - high, wide / shares.length + 0.5, high);
    });
  }

  private matches(state: HeadState, counts: number[], { warning }: Palette) {
    const most = Math.log1p(Math.max(1, ...counts));
    this.bars(state, counts.map((count) => Math.log1p(count) / most), STRIP.top, STRIP.height, css(warning, 0.85));
  }

  private window(state: HeadState, { surface, accent }: Palette) {
    const { pen } = this;
    const left = Math.max(0, stripX(state, state.range.from));
    const right = Math.min(state.width, Math.max(left + 2, stripX(state, state.range.to)));
    pen.fillStyle = css(surface, 0.66);
    pen.fillRect(0, STRIP.top, left, STRIP.height);
    pen.fillRect(right, STRIP.top, state.width - right, STRIP.height);
    pen.strokeStyle = css(accent);
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, STRIP.top - 0.5, Math.max(1, right - left - 1), STRIP.height + 1);
    pen.fillStyle = css(accent);
    if (right - left < 4 * GRIP) return;
    for (const x of [left, right - 3]) {
      pen.beginPath();
      pen.roundRect(x, STRIP.top + STRIP.height / 2 - 8, 3, 16, 1.5);
      pen.fill();
    }
  }

  private steps(state: HeadState, palette: Palette) {
    const { pen } = this;
    const length = state.range.to - state.range.from;
    state.steps.forEach((step, i) => {
      const { name, start_ns, end_ns } = step;
      const begins = ((start_ns - state.range.from) / length) * state.width;
      const ends = ((end_ns - state.range.from) / length) * state.width;
      if (ends < 0 || begins > state.width) return;
      const left = Math.max(0, begins), right = Math.min(state.width, ends);
      const isChosen = state.chosen?.from === start_ns && state.chosen.to === end_ns;
      pen.fillStyle = css(mixed(palette.surface, palette.accent, isChosen ? 0.42 : i % 2 ? 0.1 : 0.18));
      pen.fillRect(left, STEPS.top, Math.max(1, right - left - 1), STEPS.height - 2);
      if (right - left < 20) return;
      const [short, long] = stepLabels(step);
      const fitted = [`${long}  ·  ${duration(end_ns - start_ns)}`, long, short, name].find((one) =>
        pen.measureText(one).width < right - left - 10
      ) ?? "";
      pen.fillStyle = css(palette.text);
      pen.fillText(fitted, left + 6, STEPS.top + STEPS.height / 2 - 0.5);
    });
  }

  private ruler(state: HeadState, palette: Palette) {
    const { pen } = this;
    const length = state.range.to - state.range.from;
    pen.fillStyle = css(palette.line);
    pen.fillRect(0, RULER.top + RULER.height - 1, state.width, 1);
    for (const { at, text } of state.marked) {
      const x = Math.round(((at - state.range.from) / length) * state.width);
      pen.fillStyle = css(palette.line);
      pen.fillRect(x, RULER.top + 2, 1, RULER.height - 2);
      pen.fillStyle = css(palette.quiet);
      const shown = this.fit(text, 100), wide = pen.measureText(shown).width + 4;
      pen.fillText(shown, x + wide > state.width ? x - wide : x + 4, RULER.top + RULER.height / 2);
    }
  }
}
