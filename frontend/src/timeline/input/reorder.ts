/** Moves workers, processes, threads and streams up and down among their siblings. */

import { signal } from "@preact/signals";
import { go } from "../../app/router.ts";
import { scrollBy } from "./pointer_input.ts";
import { type Line, PINS } from "../model/layout.ts";
import { dropAt, insertBefore, moveSibling, type Span } from "../model/reorder.ts";
import { listText } from "../model/url_codec.ts";
import { order, pins, scroll, siblingGroups, size, trackLayout } from "../state/viewport_state.ts";

const DRAG_THRESHOLD = 4; // pixels until a press is a drag
const EDGE = 24; // pixels from the upper and lower end within which the tree scrolls, and how much in a frame
const PACE = 6;

/** The line that is dragged, and where it would be dropped. */
export const drag = signal<{ id: string; group: string; before: string | null; top: number } | null>(null);

const linesOf = (group: string): Line[] => (group === PINS ? trackLayout.peek().pinned : trackLayout.peek().lines);

const DEPTHS: Record<Line["kind"], number> = { source: 0, process: 1, axis: 2, part: 3, counter: 3 };

/** Where those of a group are that are shown. */
function spansOf(group: string): Span[] {
  const lines = linesOf(group), { pinnedHeight, height } = trackLayout.peek();
  return lines.flatMap((line, i) => {
    if (line.group !== group) return [];
    const next = lines.slice(i + 1).find(({ kind }) => DEPTHS[kind] <= DEPTHS[line.kind]);
    return [{ id: line.id, top: line.y, bottom: next?.y ?? (group === PINS ? pinnedHeight : height) }];
  });
}

function moveBefore(group: string, id: string, before: string | null) {
  if (id === before) return;
  if (group === PINS) return go({ pins: listText(insertBefore(pins.peek(), id, before)) });
  go({ order: listText(moveSibling(siblingGroups.peek().get(group) ?? [], order.peek(), id, before)) });
}

/** Scrolls to the moved line. */
function reveal(id: string) {
  const { lines, pinnedHeight } = trackLayout.peek();
  const line = lines.find((one) => one.id === id);
  if (!line) return;
  const room = size.peek().height - pinnedHeight, from = scroll.peek();
  if (line.y < from) scrollBy(line.y - from);
  else if (line.y + line.height > from + room) scrollBy(line.y + line.height - from - room);
}

/** Moves a line up or down by one visible sibling; the focus stays. */
export function moveBy({ group, id }: Line, down: boolean) {
  const shown = spansOf(group).map((span) => span.id), at = shown.indexOf(id);
  if (!group || (down ? at + 1 >= shown.length : at === 0)) return;
  const focused = document.activeElement;
  moveBefore(group, id, shown[down ? at + 2 : at - 1] ?? null);
  reveal(id);
  requestAnimationFrame(() => focused instanceof HTMLElement && focused.focus({ preventScroll: true }));
}

export const orderNaturally = () => go({ order: "" }, "push");

/** Keeps the click that ends a drag from folding the dragged line. */
function suppressClick() {
  const cancel = (event: Event) => {
    event.stopPropagation();
    event.preventDefault();
  };
  document.addEventListener("click", cancel, { capture: true, once: true });
  setTimeout(() => document.removeEventListener("click", cancel, { capture: true }));
}

/** Handles a press on a line of the tree; it becomes a drag when the pointer moves. */
export function startDrag(event: PointerEvent, { id, group }: Line) {
  if (event.button !== 0 || !group) return;
  const list = (event.currentTarget as HTMLElement).parentElement!;
  const startY = event.clientY, stop = new AbortController();
  let y = startY, frame = 0;
  const moveDragged = () => {
    frame = 0;
    const { top, bottom } = list.getBoundingClientRect();
    const isPinned = group === PINS;
    const way = isPinned ? 0 : y < top + EDGE ? -PACE : y > bottom - EDGE ? PACE : 0;
    if (way) {
      scrollBy(way);
      frame = requestAnimationFrame(moveDragged);
    }
    drag.value = { id, group, ...dropAt(spansOf(group), y - top + (isPinned ? 0 : scroll.peek())) };
  };
  const end = (isDropped: boolean) => {
    stop.abort();
    cancelAnimationFrame(frame);
    const now = drag.peek();
    drag.value = null;
    if (!now) return;
    suppressClick();
    if (isDropped) moveBefore(group, id, now.before);
  };
  const on = <E extends Event>(name: string, act: (event: E) => void) =>
    document.addEventListener(name, act as EventListener, { signal: stop.signal, capture: true });
  on("pointermove", ({ clientY }: PointerEvent) => {
    y = clientY;
    if (!drag.peek() && Math.abs(y - startY) < DRAG_THRESHOLD) return;
    cancelAnimationFrame(frame);
    moveDragged();
  });
  on("pointerup", () => end(true));
  on("pointercancel", () => end(false));
  on("keydown", (pressed: KeyboardEvent) => {
    if (pressed.key !== "Escape") return;
    pressed.stopPropagation();
    end(false);
  });
}
