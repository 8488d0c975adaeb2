/** The keyboard on the timeline. Search and drawer have theirs in the panels. */

import type { SliceSummary } from "../../api/timeline_types.ts";
import { nearestBox } from "../draw/hit_test.ts";
import type { Push } from "../draw/motion.ts";
import type { Renderer } from "../draw/renderer.ts";
import { enqueue, waitForSelection } from "./command_queue.ts";
import { cycleTargets, followFlow } from "./flow_navigation.ts";
import { rangeOf, scrollBy } from "./pointer_input.ts";
import { moveBy } from "./reorder.ts";
import { nsPerPixel, visibleLines } from "../model/geometry.ts";
import { axisOf, type Band, LANE, type Line, lineOf } from "../model/layout.ts";
import { padRange } from "../model/ranges.ts";
import type { Area } from "../model/url_codec.ts";
import { addBookmark, chosenBookmark, latestArea, removeBookmark } from "../state/bookmarks.ts";
import { cyclePath } from "../state/critical_paths.ts";
import { area, detail, find, hover, jumpTo, select, selection, setArea, setFind } from "../state/selection.ts";
import { sourceOf, whole } from "../state/sources.ts";
import {
  geometry,
  mode,
  pointer,
  size,
  togglePin,
  trackLayout,
  viewport,
  zoomToRange,
} from "../state/viewport_state.ts";
import { awaitsSecond, type Commands, isField } from "../../ui/keys.ts";

const MOTION_KEYS: Record<string, Push> = { KeyW: "in", KeyS: "out", KeyA: "left", KeyD: "right" };

/** Follows the motion keys while they are held; by position, so that they form a cross on any keyboard layout. */
export function followHeldKeys(view: Renderer): () => void {
  const stop = new AbortController();
  const on = (target: EventTarget, name: string, act: (event: KeyboardEvent) => void) =>
    target.addEventListener(name, act as EventListener, { signal: stop.signal, capture: true });
  on(document, "keydown", (event) => {
    const push = MOTION_KEYS[event.code];
    if (!push || event.ctrlKey || event.metaKey || event.altKey || awaitsSecond() || isField(event.target)) return;
    event.preventDefault();
    view.motion.press(push, performance.now());
    view.invalidate();
  });
  on(document, "keyup", (event) => {
    const push = MOTION_KEYS[event.code];
    if (push) view.motion.release(push);
  });
  on(globalThis as unknown as EventTarget, "blur", () => view.motion.release());
  return () => stop.abort();
}

/** The selected slice, from the server or as drawn. */
function selected(): { source: string; summary: SliceSummary } | null {
  const chosen = selection.peek(), over = hover.peek();
  if (!chosen) return null;
  const facts = detail.peek();
  const isLoaded = facts?.state === "ready" && facts.slice === chosen.slice;
  const summary = isLoaded ? facts : (over?.source === chosen.source && over.slice === chosen.slice ? over : null);
  return summary && { source: chosen.source, summary };
}

/** Centers the selection or the area; fits it if it is already centered. */
async function focus() {
  if (!selected()) await waitForSelection();
  const one = selected();
  const range = one ? rangeOf(one.source, one.summary) : area.peek();
  if (!range) return;
  const { from, to } = viewport.peek();
  const middle = (range.from + range.to) / 2, length = to - from;
  const isCentered = Math.abs(middle - (from + to) / 2) < length * 0.01;
  if (isCentered || range.to - range.from > length || !one) return zoomToRange(padRange(range, 0.15));
  zoomToRange({ from: middle - length / 2, to: middle + length / 2 });
}

interface Lane {
  band: Band;
  lane: number;
}

/** All visible lanes, from the top. */
const visibleLanes = (): Lane[] =>
  visibleLines(geometry()).sort((a, b) => a.top - b.top).flatMap(({ line: { band } }) =>
    band && !band.isMini ? Array.from({ length: band.lanes }, (_, lane) => ({ band, lane })) : []
  );

/** Selects in the first of the lanes that has a slice at a time, or within some time of it. */
function selectIn(view: Renderer, lanes: Lane[], time: number, within: number) {
  for (const { band, lane } of lanes) {
    const source = sourceOf(band.source);
    const hit = source && nearestBox(view.pieces(source, band.track), lane, time - source.shift_ns, within / 3);
    if (hit) return select({ source: source.id, slice: hit.slice });
  }
}

function selectFirst(view: Renderer) {
  const { from, to } = viewport.peek();
  selectIn(view, visibleLanes(), (from + to) / 2, (to - from) / 2);
}

async function selectNeighbor(view: Renderer, way: "next" | "previous") {
  await waitForSelection();
  const chosen = selection.peek(), facts = detail.peek();
  if (!chosen) return selectFirst(view);
  const other = facts?.state === "ready" ? facts[way] : null;
  if (other !== null) await jumpTo(chosen.source, other);
}

async function selectVertically(view: Renderer, isDown: boolean) {
  if (!selected()) await waitForSelection();
  const one = selected();
  if (!one) return selectFirst(view);
  const lanes = visibleLanes();
  const at = lanes.findIndex(({ band, lane }) =>
    band.source === one.source && band.track === one.summary.track && lane === one.summary.lane
  );
  const { from, to } = rangeOf(one.source, one.summary), visible = viewport.peek();
  const middle = (Math.max(from, visible.from) + Math.min(to, visible.to)) / 2;
  const others = isDown ? lanes.slice(at + 1) : lanes.slice(0, Math.max(0, at)).reverse();
  selectIn(view, others, middle, 12 * nsPerPixel(geometry()));
}

/** The time of the selection, on its track; null while it isn't known exactly. */
function selectedArea(): Area | null {
  const one = selected();
  if (!one || detail.peek()?.state !== "ready") return null; // drawn times aren't exact
  return { ...rangeOf(one.source, one.summary), tracks: [{ source: one.source, track: one.summary.track }] };
}

/** Selects the time of the selection as an area; `isBookmark` bookmarks it, or the area if that was selected last. */
async function markSelection(onAllTracks: boolean, isBookmark: boolean) {
  await waitForSelection();
  const chosen = (isBookmark ? latestArea() : null) ?? selectedArea();
  if (chosen) (isBookmark ? addBookmark : setArea)(onAllTracks ? { ...chosen, tracks: [] } : chosen);
}

function removeChosen() {
  const chosen = chosenBookmark.peek();
  if (chosen) removeBookmark(chosen);
}

/** The line of the tree in which an element is. */
function lineAround(element: Element | null): Line | undefined {
  const { pinned, lines } = trackLayout.peek(), head = element?.closest<HTMLElement>(".track");
  return head ? [...pinned, ...lines].find(({ id }) => id === head.dataset.line) : undefined;
}

/** The line with keyboard focus, else the one under the pointer, else that of the focus or of the selection. */
function lineHere(view: Renderer): Line | undefined {
  const { x, y, isOver } = pointer.peek();
  const over = isOver ? view.at(x, y)?.line : undefined, one = selected();
  return lineAround(document.querySelector(".track :focus-visible")) ??
    lineAround(document.querySelector(".track:hover")) ?? over ?? lineAround(document.activeElement) ??
    (one ? lineOf(trackLayout.peek(), one.source, one.summary.track) : undefined);
}

function pinHere(view: Renderer) {
  const line = lineHere(view);
  const axis = line && axisOf(trackLayout.peek(), line);
  if (axis?.group) togglePin(axis.id);
}

/** Moves the line, or the thread that it is a part of. */
function moveHere(view: Renderer, down: boolean) {
  const line = lineHere(view);
  const movable = line && (line.group ? line : axisOf(trackLayout.peek(), line));
  if (movable) moveBy(movable, down);
}

/** Clears one thing: the area, the selection, or the search. */
function dismissOne() {
  if (area.peek()) setArea(null);
  else if (selection.peek()) select(null);
  else if (find.peek()) setFind(null);
}

export function commandsOf(view: Renderer): Commands {
  const page = () => size.peek().height * 0.8;
  const tool = (chosen: typeof mode.value) => () => (mode.value = chosen);
  const queued = (act: (event: KeyboardEvent) => Promise<void> | void) => (event: KeyboardEvent) =>
    enqueue(() => act(event), event.repeat);
  const next = queued(() => selectNeighbor(view, "next")), previous = queued(() => selectNeighbor(view, "previous"));
  const markOne = queued(({ shiftKey }) => markSelection(false, shiftKey)),
    markAll = queued(({ shiftKey }) => markSelection(true, shiftKey));
  return {
    f: queued(focus),
    F: queued(focus),
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
    "]": queued(() => followFlow(true)),
    "[": queued(() => followFlow(false)),
    "}": queued(() => cycleTargets(1)),
    "{": queued(() => cycleTargets(-1)),
    m: markOne,
    M: markOne,
    r: markAll,
    R: markAll,
    Delete: queued(removeChosen),
    Backspace: queued(removeChosen),
    p: () => pinHere(view),
    P: () => pinHere(view),
    c: cyclePath,
    C: cyclePath,
    Escape: dismissOne,
    "1": tool("area"),
    "2": tool("pan"),
    "3": tool("zoom"),
    "4": tool("area"),
    "⌥ArrowUp": () => moveHere(view, false),
    "⌥ArrowDown": () => moveHere(view, true),
    "⇧ArrowUp": queued(() => selectVertically(view, false)),
    "⇧ArrowDown": queued(() => selectVertically(view, true)),
  };
}

/** The timeline's keys and mouse actions, for the key sheet. */
export const KEYS: [keys: string, meaning: string][] = [
  ["W S", "Zoom in and out at the pointer while held; also Ctrl and the wheel"],
  ["A D", "Move left and right while held; also Shift and the wheel, or Shift and drag"],
  ["↑ ↓", "Scroll the tracks; also the wheel"],
  ["0", "The whole recording"],
  ["F", "Center the selection; again: fit it. Double-click fits at once"],
  [". ,", "Next or previous slice of the row; also → and ←"],
  ["⇧↑ ⇧↓", "The slice above or below the selection"],
  ["[ ]", "Follow the arrows of the selection back and forth; at their end, go to the next of several"],
  ["⇧[ ⇧]", "The previous or next target of several arrows"],
  ["M R", "Select the time of the slice as an area, on its track or on all; dragging selects any"],
  ["⇧M ⇧R", "The same, and bookmark it; after dragging, bookmark what was dragged"],
  ["Del", "Remove the selected bookmark; click its letter in the ruler to select it"],
  ["Click ⇧Click", "On a step: select its time; compare another step with it, by name"],
  ["P", "Pin the track under the pointer, or that of the selection"],
  ["Alt+↑ Alt+↓", "Move the worker, process, thread or stream up or down; also by dragging its name"],
  ["C", "The critical path of each step; with several workers also the one across ranks; then none"],
  ["/", "Search; Enter and ⇧Enter go to the next and the previous result"],
  ["Q", "Open or close the drawer"],
  ["1 2 3 4", "What dragging does: 2 moves, 3 zooms, 1 and 4 select a time"],
  ["Esc", "Clear the area, then the selection, then the search"],
  ["?", "This list of keys"],
];
