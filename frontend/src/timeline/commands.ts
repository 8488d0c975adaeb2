/** The keyboard on the timeline. Search and drawer have theirs in the panels. */

import { awaitsSecond, type Commands, isField } from "../widgets/keys.ts";
import { linesInSight, nsPerPixel } from "./geometry.ts";
import { rangeOf, scrollBy } from "./hands.ts";
import { nearest } from "./boxes.ts";
import { chosenMark, keep, latestArea, remove } from "./kept.ts";
import { axisOf, type Band, LANE, type Line, lineOf } from "./layout.ts";
import type { Brief } from "./model.ts";
import type { Push } from "./motion.ts";
import { moveBy } from "./moving.ts";
import { turnPath } from "./paths.ts";
import type { Area } from "./places.ts";
import { roomy } from "./ranges.ts";
import { geometry, laid, mode, pointed, size } from "./scene.ts";
import {
  area,
  detail,
  find,
  hover,
  jumpTo,
  pin,
  select,
  selection,
  setArea,
  setFind,
  sourceOf,
  viewport,
  whole,
  zoomToRange,
} from "./state.ts";
import { along, beside as besideOnTrail } from "./trail.ts";
import { inTurn, told } from "./turns.ts";
import type { View } from "./view.ts";

const HELD: Record<string, Push> = { KeyW: "in", KeyS: "out", KeyA: "left", KeyD: "right" };

/** Follows the keys that move as long as they are held: by their place, so that any layout has them in a cross. */
export function followHeldKeys(view: View): () => void {
  const stop = new AbortController();
  const on = (target: EventTarget, name: string, act: (event: KeyboardEvent) => void) =>
    target.addEventListener(name, act as EventListener, { signal: stop.signal, capture: true });
  on(document, "keydown", (event) => {
    const push = HELD[event.code];
    if (!push || event.ctrlKey || event.metaKey || event.altKey || awaitsSecond() || isField(event.target)) return;
    event.preventDefault();
    view.motion.press(push, performance.now());
    view.invalidate();
  });
  on(document, "keyup", (event) => {
    const push = HELD[event.code];
    if (push) view.motion.release(push);
  });
  on(globalThis as unknown as EventTarget, "blur", () => view.motion.release());
  return () => stop.abort();
}

/** The selected slice, as well as it is known. */
function selected(): { source: string; brief: Brief } | null {
  const chosen = selection.peek(), over = hover.peek();
  if (!chosen) return null;
  const known = detail.peek();
  const isKnown = known?.state === "ready" && known.slice === chosen.slice;
  const brief = isKnown ? known : (over?.source === chosen.source && over.slice === chosen.slice ? over : null);
  return brief && { source: chosen.source, brief };
}

/** Centres the selection, or the area; fits it if it is centred already. */
async function focus() {
  if (!selected()) await told();
  const one = selected();
  const range = one ? rangeOf(one.source, one.brief) : area.peek();
  if (!range) return;
  const { from, to } = viewport.peek();
  const middle = (range.from + range.to) / 2, length = to - from;
  const isCentred = Math.abs(middle - (from + to) / 2) < length * 0.01;
  if (isCentred || range.to - range.from > length || !one) return zoomToRange(roomy(range, 0.15));
  zoomToRange({ from: middle - length / 2, to: middle + length / 2 });
}

interface Lane {
  band: Band;
  lane: number;
}

/** All lanes in sight, from the top. */
const lanesInSight = (): Lane[] =>
  linesInSight(geometry()).sort((a, b) => a.top - b.top).flatMap(({ line: { band } }) =>
    band && !band.isMini ? Array.from({ length: band.lanes }, (_, lane) => ({ band, lane })) : []
  );

/** Selects in the first of the lanes that has a slice at a time, or within some time of it. */
function selectIn(view: View, lanes: Lane[], time: number, within: number) {
  for (const { band, lane } of lanes) {
    const source = sourceOf(band.source);
    const hit = source && nearest(view.pieces(source, band.track), lane, time - source.shift_ns, within / 3);
    if (hit) return select({ source: source.id, slice: hit.slice });
  }
}

function selectFirst(view: View) {
  const { from, to } = viewport.peek();
  selectIn(view, lanesInSight(), (from + to) / 2, (to - from) / 2);
}

async function beside(view: View, way: "next" | "previous") {
  await told();
  const chosen = selection.peek(), known = detail.peek();
  if (!chosen) return selectFirst(view);
  const other = known?.state === "ready" ? known[way] : null;
  if (other !== null) await jumpTo(chosen.source, other);
}

async function vertical(view: View, isDown: boolean) {
  if (!selected()) await told();
  const one = selected();
  if (!one) return selectFirst(view);
  const lanes = lanesInSight();
  const at = lanes.findIndex(({ band, lane }) =>
    band.source === one.source && band.track === one.brief.track && lane === one.brief.lane
  );
  const { from, to } = rangeOf(one.source, one.brief), seen = viewport.peek();
  const middle = (Math.max(from, seen.from) + Math.min(to, seen.to)) / 2;
  const others = isDown ? lanes.slice(at + 1) : lanes.slice(0, Math.max(0, at)).reverse();
  selectIn(view, others, middle, 12 * nsPerPixel(geometry()));
}

/** The time of the selection, on its track; null while it isn't known exactly. */
function selectedArea(): Area | null {
  const one = selected();
  if (!one || detail.peek()?.state !== "ready") return null; // what is drawn of it isn't exact
  return { ...rangeOf(one.source, one.brief), tracks: [{ source: one.source, track: one.brief.track }] };
}

/** Marks the selection; with shift keeps it, or the area if that is what was chosen last. */
async function mark(isOnAll: boolean, isKept: boolean) {
  await told();
  const chosen = (isKept ? latestArea() : null) ?? selectedArea();
  if (chosen) (isKept ? keep : setArea)(isOnAll ? { ...chosen, tracks: [] } : chosen);
}

function removeChosen() {
  const chosen = chosenMark.peek();
  if (chosen) remove(chosen);
}

/** The line of the tree in which an element is. */
function lineAround(element: Element | null): Line | undefined {
  const { pinned, lines } = laid.peek(), head = element?.closest<HTMLElement>(".track");
  return head ? [...pinned, ...lines].find(({ id }) => id === head.dataset.line) : undefined;
}

/** The line that was gone to by keyboard, else the one under the pointer, else that of the focus or of the selection. */
function lineHere(view: View): Line | undefined {
  const { x, y, isOver } = pointed.peek();
  const over = isOver ? view.at(x, y)?.line : undefined, one = selected();
  return lineAround(document.querySelector(".track :focus-visible")) ??
    lineAround(document.querySelector(".track:hover")) ?? over ?? lineAround(document.activeElement) ??
    (one ? lineOf(laid.peek(), one.source, one.brief.track) : undefined);
}

function pinHere(view: View) {
  const line = lineHere(view);
  const axis = line && axisOf(laid.peek(), line);
  if (axis?.group) pin(axis.id);
}

/** Moves the line, or the thread that it is a part of. */
function moveHere(view: View, down: boolean) {
  const line = lineHere(view);
  const moved = line && (line.group ? line : axisOf(laid.peek(), line));
  if (moved) moveBy(moved, down);
}

/** Takes back one thing: what was done last comes first. */
function takeBack() {
  if (area.peek()) setArea(null);
  else if (selection.peek()) select(null);
  else if (find.peek()) setFind(null);
}

export function commandsOf(view: View): Commands {
  const page = () => size.peek().height * 0.8;
  const tool = (chosen: typeof mode.value) => () => (mode.value = chosen);
  const turn = (act: (event: KeyboardEvent) => Promise<void> | void) => (event: KeyboardEvent) =>
    inTurn(() => act(event), event.repeat);
  const next = turn(() => beside(view, "next")), previous = turn(() => beside(view, "previous"));
  const markOne = turn(({ shiftKey }) => mark(false, shiftKey)), markAll = turn(({ shiftKey }) => mark(true, shiftKey));
  return {
    f: turn(focus),
    F: turn(focus),
    "0": () => zoomToRange(whole.peek()),
    Home: () => zoomToRange(whole.peek()),
    ".": next,
    ",": previous,
    ArrowRight: next,
    ArrowLeft: previous,
    ArrowUp: () => scrollBy(-3 * LANE),
    ArrowDown: () => scrollBy(3 * LANE),
    PageUp: () => scrollBy(-page()),
    PageDown: () => scrollBy(page()),
    "]": turn(() => along(true)),
    "[": turn(() => along(false)),
    "}": turn(() => besideOnTrail(1)),
    "{": turn(() => besideOnTrail(-1)),
    m: markOne,
    M: markOne,
    r: markAll,
    R: markAll,
    Delete: turn(removeChosen),
    Backspace: turn(removeChosen),
    p: () => pinHere(view),
    P: () => pinHere(view),
    c: turnPath,
    C: turnPath,
    Escape: takeBack,
    "1": tool("area"),
    "2": tool("pan"),
    "3": tool("zoom"),
    "4": tool("area"),
    "⌥ArrowUp": () => moveHere(view, false),
    "⌥ArrowDown": () => moveHere(view, true),
    "⇧ArrowUp": turn(() => vertical(view, false)),
    "⇧ArrowDown": turn(() => vertical(view, true)),
  };
}
