/** The chosen row of a table, and how keys move it. */

import type { RefObject } from "preact";
import { type Layout } from "./row_layout.ts";
import type { TableScope } from "./table_scope.tsx";
import { useKeys } from "../ui/keys.ts";
import { HEAD } from "./table_layout.ts";

/** How rows of a tree fold. */
export interface Folding {
  level: (row: number) => number;
  /** Whether its children are shown; null if it has none. */
  isOpen: (row: number) => boolean | null;
  /** Its parent row, or -1. */
  parent: (row: number) => number;
  toggle: (row: number) => void;
}

/** Scrolls to a row. */
function reveal(box: HTMLDivElement, layout: Layout, place: number) {
  const top = layout.top(place), room = box.clientHeight - HEAD - layout.height(place);
  if (top < box.scrollTop) box.scrollTop = top;
  if (top > box.scrollTop + room) box.scrollTop = top - room;
  box.scrollIntoView({ block: "nearest" });
}

/** The actions of the arrow keys: to the next or previous row, into a row's children, and to its parent. */
function stepsOf(order: Uint32Array, place: number, folding: Folding | null, move: (by: number) => void) {
  const steps: Record<string, () => void> = { ArrowDown: () => move(1), ArrowUp: () => move(-1) };
  if (!folding || place < 0) return steps;
  const row = order[place]!, isOpen = folding.isOpen(row);
  steps.ArrowRight = () => {
    if (isOpen) move(1);
    else if (isOpen === false) folding.toggle(row);
  };
  steps.ArrowLeft = () => {
    const around = order.indexOf(folding.parent(row));
    if (isOpen) folding.toggle(row);
    else if (around >= 0) move(around - place);
  };
  return steps;
}

/** The chosen row and whether it is open, which the address holds; and how keys and clicks change that. */
export function useRowSelection(
  scope: TableScope,
  order: Uint32Array,
  scroller: RefObject<HTMLDivElement | null>,
  layout: Layout,
  folding: Folding | null,
) {
  const close = () => scope.go({ open: "" }, "push");
  // A held key repeats faster than the page is drawn: the place is that of the address, not of the last drawing.
  const placeNow = () => (scope.get("row") ? order.indexOf(Number(scope.get("row"))) : -1);
  const toggle = (place: number) => {
    if (place === placeNow() && scope.get("open")) close();
    else if (order[place] !== undefined) scope.go({ row: String(order[place]), open: "1" }, "push");
  };
  const move = (by: number) => {
    if (!order.length) return;
    const place = Math.max(0, Math.min(placeNow() + by, order.length - 1));
    scope.go({ row: String(order[place]) });
    // Only for keys: a clicked row is visible, and must not move under the pointer.
    reveal(scroller.current!, layout, place);
  };
  const keys = { j: () => move(1), k: () => move(-1), Enter: () => toggle(placeNow()) };
  useKeys(scope.get("open") ? { ...keys, Escape: close } : keys, scope.box);
  const onKeyDown = (event: KeyboardEvent) => {
    const act = stepsOf(order, placeNow(), folding, move)[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !act) return;
    event.preventDefault();
    act();
  };
  return { toggle, move, close, onKeyDown };
}
