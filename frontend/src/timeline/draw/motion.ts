/** What moves the viewport from frame to frame: keys that are held, and the way to a destination. */

import { clampRange, interpolateRange, shiftRange, zoomRange } from "../model/ranges.ts";
import type { Range } from "../model/url_codec.ts";

const ZOOM_PER_MS = 0.0042;
const PAN_PER_MS = 0.0013;
const SPEEDS_UP_MS = 110;
const TRAVEL_MS = 220;
const LONGEST_FRAME_MS = 48;

export type Push = "in" | "out" | "left" | "right";

export class Motion {
  private readonly pushes = new Map<Push, number>();
  private distance: { from: Range; to: Range; startedAt: number } | null = null;
  private before = 0;

  get isMoving(): boolean {
    return this.pushes.size > 0 || this.distance !== null;
  }

  /** A key goes down; it pushes until it is released. */
  press(push: Push, now: number) {
    if (!this.pushes.size) this.before = now;
    if (!this.pushes.has(push)) this.pushes.set(push, now);
    this.distance = null;
  }

  release(push?: Push) {
    if (push) this.pushes.delete(push);
    else this.pushes.clear();
  }

  go(from: Range, to: Range, now: number) {
    this.distance = { from, to, startedAt: now };
  }

  stop() {
    this.distance = null;
  }

  /** Where the viewport is now; `around` is the time that zooming keeps in place. */
  step(range: Range, whole: Range, around: number, now: number): Range {
    const elapsed = Math.min(LONGEST_FRAME_MS, Math.max(0, now - this.before));
    this.before = now;
    if (this.distance) {
      const { from, to, startedAt } = this.distance;
      const part = Math.min(1, (now - startedAt) / TRAVEL_MS);
      if (part === 1) this.distance = null;
      return part === 1 ? to : interpolateRange(from, to, part * part * (3 - 2 * part));
    }
    let next = range;
    for (const [push, startedAt] of this.pushes) {
      const distance = elapsed * (0.35 + 0.65 * Math.min(1, (now - startedAt) / SPEEDS_UP_MS));
      const pan = (next.to - next.from) * PAN_PER_MS * distance;
      if (push === "in" || push === "out") {
        next = zoomRange(next, Math.exp((push === "in" ? -1 : 1) * ZOOM_PER_MS * distance), around);
      } else next = shiftRange(next, push === "left" ? -pan : pan);
    }
    return this.pushes.size ? clampRange(next, whole) : next;
  }
}
