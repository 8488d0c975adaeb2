/** What the canvas shows beside the state that panels share: its layout, its size, how far it is scrolled. */

import { computed, signal } from "@preact/signals";
import { parseFilter } from "../order.ts";
import { address } from "../state.ts";
import type { Geometry } from "./geometry.ts";
import { type Drawn, foldsAround, groupsOf, layoutOf, lineOf, type Wishes } from "./layout.ts";
import type { Brief, Counter } from "./model.ts";
import { type Area, listIn } from "./places.ts";
import { main, pins, sources, turn, turned, viewport } from "./state.ts";

const words = computed(() => address.value.tracks ?? "");

const orderText = computed(() => address.value.order ?? "");

/** Which siblings were moved to the front of theirs: `inOrder` reads it. */
export const order = computed(() => listIn(orderText.value));

const wishes = computed((): Wishes => ({
  main: main.value,
  turned: turned.value,
  pins: pins.value,
  order: order.value,
  filter: parseFilter(words.value),
}));

const drawn = computed((): Drawn[] =>
  sources.value.map(({ id, meta }) => ({ id, tracks: meta.tracks, counters: meta.counters }))
);

export const laid = computed(() => layoutOf(drawn.value, wishes.value));

/** Who stands beside whom, in the natural order. */
export const groups = computed(() => groupsOf(drawn.value, main.value));

export const size = signal({ width: 0, height: 0 });
export const scroll = signal(0);

/** Where the pointer is. */
export const pointed = signal({ x: 0, y: 0, isOver: false });

/** A counter under the pointer: what it was in the time of the pixel. */
export interface CounterValue {
  counter: Counter;
  least: number;
  most: number;
  last: number;
}
export const counted = signal<CounterValue | null>(null);

/** What dragging does: the tools of older trace viewers. */
export const mode = signal<"area" | "pan" | "zoom">("area");

/** The area while it is dragged. */
export const draft = signal<Area | null>(null);

/** Whether finer tiles are on their way. */
export const isWaiting = signal(false);

/** What the last frame drew. */
export const shown = { boxes: 0 };

export const geometry = (): Geometry => ({
  ...size.value,
  range: viewport.value,
  laid: laid.value,
  scroll: scroll.value,
});

/** Unfolds what hides a slice; returns how far to scroll so that it is in sight. */
export function scrollTo(source: string, { track, lane }: Brief): number {
  const of = sources.peek().find(({ id }) => id === source);
  if (!of) return scroll.peek();
  const around = new Set(foldsAround({ id: of.id, tracks: of.meta.tracks }, track, wishes.peek()));
  for (let inward = 0; inward < 4; inward++) {
    const folded = laid.peek().lines.filter(({ id, isFolded }) => isFolded && around.has(id)).map(({ id }) => id);
    if (!folded.length) break;
    turn(folded);
  }
  const { lines, pinnedHeight } = laid.peek();
  const line = lineOf(laid.peek(), source, track);
  if (!line?.band || !lines.includes(line)) return scroll.peek();
  const room = size.peek().height - pinnedHeight;
  const y = line.y + line.band.top + lane * line.band.rowHeight;
  const isSeen = y > scroll.peek() + 4 && y + line.band.rowHeight < scroll.peek() + room - 4;
  return isSeen ? scroll.peek() : Math.max(0, y - room / 2);
}
