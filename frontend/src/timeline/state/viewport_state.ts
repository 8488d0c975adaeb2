/** The state of the viewport: the visible time, the layout of the tracks, the size, the scroll position. */

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import type { Counter, SliceSummary } from "../../api/timeline_types.ts";
import type { Address } from "../../app/host.ts";
import { address, go, subject } from "../../app/router.ts";
import { parseFilter } from "../../table/order.ts";
import type { Geometry } from "../model/geometry.ts";
import { foldsAround, groupsOf, layoutOf, type LayoutOptions, type LayoutTrace, lineOf } from "../model/layout.ts";
import { clampRange, startRange } from "../model/ranges.ts";
import { type Area, listIn, listText, type Range, rangeOf } from "../model/url_codec.ts";
import { sourceOf, whole } from "./sources.ts";
import { addressText, main, traces } from "./traces.ts";

/** The visible time range; changes with each frame while it moves, `settled` only once it rests. */
export const viewport = signal<Range>({ from: 0, to: 1 });
export const settled = signal<Range>({ from: 0, to: 1 });

/** The range to animate to, and the slice to scroll to. */
export const destination = signal<Range | null>(null);
export const scrollTarget = signal<{ source: string; summary: SliceSummary } | null>(null);

/** The last range written to or read from the address. */
let writtenRange = "";

const rangeText = ({ from, to }: Range): string => `${Math.round(from)} ${Math.round(to)}`;

function writeViewport() {
  writtenRange = rangeText(viewport.peek());
  settled.value = viewport.peek();
  const [from, to] = writtenRange.split(" ");
  if (address.peek().from !== from || address.peek().to !== to) go({ from: from!, to: to! });
}

/** Shows a range, moving there smoothly; "back" returns unless it replaces the address. */
export function zoomToRange(range: Range, changes: Address = {}, how: "push" | "replace" = "push") {
  writeViewport();
  const next = clampRange(range, whole.value);
  writtenRange = rangeText(next);
  const [from, to] = writtenRange.split(" ");
  go({ from: from!, to: to!, ...changes }, how);
  destination.value = next;
}

function followAddress(): () => void {
  const chosen = computed(() => `${address.value.from ?? ""} ${address.value.to ?? ""}`);
  return effect(() => {
    const text = chosen.value;
    const source = sourceOf(main.value);
    if (!source || text === writtenRange) return;
    const [from, to] = text.split(" ");
    const range = rangeOf(from, to) ?? startRange(source.meta);
    batch(() => {
      destination.value = null;
      viewport.value = settled.value = clampRange(range, untracked(() => whole.value));
    });
    writtenRange = text;
  });
}

const SETTLE_MS = 200;

/** Writes the viewport into the address once it rests. */
function followViewport(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = effect(() => {
    void viewport.value;
    clearTimeout(timer);
    if (traces.value.length) timer = setTimeout(writeViewport, SETTLE_MS); // not that of a trace that is gone
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}

/** The subject that `scroll` is about. */
let scrolledSubject = "";

/** Starts keeping the viewport and the address in sync; returns a function that stops. */
export function startViewport(): () => void {
  writtenRange = "";
  if (scrolledSubject !== subject.peek()) scroll.value = 0;
  scrolledSubject = subject.peek();
  const ends = [followAddress(), followViewport()];
  return () => {
    for (const end of ends) end();
    destination.value = scrollTarget.value = draft.value = null;
  };
}

const texts = { folded: addressText("folded"), pins: addressText("pins"), order: addressText("order") };
const trackFilter = addressText("tracks");

/** The ids of lines that are folded other than by default, and of pinned ones. */
const toggled = computed((): ReadonlySet<string> => new Set(listIn(texts.folded.value)));
export const pins = computed((): string[] => listIn(texts.pins.value));

export function toggleFolds(ids: string[]) {
  const next = new Set(toggled.value);
  for (const id of ids) if (!next.delete(id)) next.add(id);
  go({ folded: listText([...next]) });
}

export const togglePin = (id: string) =>
  go({ pins: listText(pins.value.includes(id) ? pins.value.filter((one) => one !== id) : [...pins.value, id]) });

/** The ids of reordered lines, for `applyOrder`. */
export const order = computed(() => listIn(texts.order.value));

const layoutOptions = computed((): LayoutOptions => ({
  main: main.value,
  toggled: toggled.value,
  pins: pins.value,
  order: order.value,
  filter: parseFilter(trackFilter.value),
}));

const layoutTraces = computed((): LayoutTrace[] =>
  traces.value.map(({ id, meta }) => ({ id, tracks: meta.tracks, counters: meta.counters }))
);

export const trackLayout = computed(() => layoutOf(layoutTraces.value, layoutOptions.value));

/** The siblings of each group, in their natural order. */
export const siblingGroups = computed(() => groupsOf(layoutTraces.value, main.value));

export const size = signal({ width: 0, height: 0 });
export const scroll = signal(0);

/** Where the pointer is. */
export const pointer = signal({ x: 0, y: 0, isOver: false });

/** The counter under the pointer, and its values within the pixel. */
export interface CounterValue {
  counter: Counter;
  least: number;
  most: number;
  last: number;
}
export const counterAtPointer = signal<CounterValue | null>(null);

/** The drag mode, as in older trace viewers. */
export const mode = signal<"area" | "pan" | "zoom">("area");

/** The area while it is dragged. */
export const draft = signal<Area | null>(null);

/** Whether tiles or names are still to come. */
export const isWaiting = signal(true);

/** What the last frame drew. */
export const lastFrame = { boxes: 0 };

export const geometry = (): Geometry => ({
  ...size.value,
  range: viewport.value,
  layout: trackLayout.value,
  scroll: scroll.value,
});

/** Unfolds the lines around a slice; returns the scroll position that shows it. */
export function scrollTo(source: string, { track, lane }: SliceSummary): number {
  const of = traces.peek().find(({ id }) => id === source);
  if (!of) return scroll.peek();
  const around = new Set(foldsAround({ id: of.id, tracks: of.meta.tracks }, track, layoutOptions.peek()));
  for (let inward = 0; inward < 4; inward++) {
    const folded = trackLayout.peek().lines.filter(({ id, isFolded }) => isFolded && around.has(id)).map(({ id }) =>
      id
    );
    if (!folded.length) break;
    toggleFolds(folded);
  }
  const { lines, pinnedHeight } = trackLayout.peek();
  const line = lineOf(trackLayout.peek(), source, track);
  if (!line?.band || !lines.includes(line)) return scroll.peek();
  const room = size.peek().height - pinnedHeight;
  const y = line.y + line.band.top + lane * line.band.rowHeight;
  const isVisible = y > scroll.peek() + 4 && y + line.band.rowHeight < scroll.peek() + room - 4;
  return isVisible ? scroll.peek() : Math.max(0, y - room / 2);
}
