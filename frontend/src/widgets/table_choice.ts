/** The chosen row of a table, and how keys move it. */

import type { RefObject } from "preact";
import type { Slot } from "../slot.ts";
import { useKeys } from "./keys.ts";
import { HEAD, ROW } from "./table_layout.ts";

/** Rows that lie in each other. */
export interface Folding {
  level: (row: number) => number;
  /** Whether the rows in it are shown; null if there are none. */
  isOpen: (row: number) => boolean | null;
  /** The row around it, or -1. */
  parent: (row: number) => number;
  turn: (row: number) => void;
}

/** The chosen row and whether it is open, which the address holds; and how keys and clicks change that. */
export function useChoice(
  slot: Slot,
  order: Uint32Array,
  scroller: RefObject<HTMLDivElement | null>,
  top: (place: number) => number,
  folding: Folding | null,
) {
  const select = (place: number, open = false) => {
    if (place < 0 || place >= order.length) return;
    slot.go({ row: String(order[place]), open: open ? "1" : "" });
  };
  // Only for keys: what a click chose is in sight, and must not move under the pointer.
  const reveal = (place: number) => {
    const box = scroller.current!;
    const room = box.clientHeight - HEAD - ROW;
    if (top(place) < box.scrollTop) box.scrollTop = top(place);
    if (top(place) > box.scrollTop + room) box.scrollTop = top(place) - room;
    box.scrollIntoView({ block: "nearest" });
  };
  // A held key repeats faster than the page is drawn: the place is that of the address, not of the last drawing.
  const placeNow = () => (slot.get("row") ? order.indexOf(Number(slot.get("row"))) : -1);
  const toggle = (place: number) => select(place, !(place === placeNow() && slot.get("open")));
  const move = (by: number) => {
    if (!order.length) return;
    const place = Math.max(0, Math.min(placeNow() + by, order.length - 1));
    select(place);
    reveal(place);
  };
  useKeys({ j: () => move(1), k: () => move(-1), Enter: () => toggle(placeNow()) }, slot.box);
  const inwards = (place: number, row: number) => {
    const isOpen = folding!.isOpen(row);
    if (isOpen) move(1);
    else if (isOpen === false) folding!.turn(row);
    reveal(place);
  };
  const outwards = (place: number, row: number) => {
    const around = order.indexOf(folding!.parent(row));
    if (folding!.isOpen(row)) folding!.turn(row);
    else if (around >= 0) move(around - place);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const place = placeNow();
    const steps: Record<string, () => void> = { ArrowDown: () => move(1), ArrowUp: () => move(-1) };
    if (folding && place >= 0) {
      steps.ArrowRight = () => inwards(place, order[place]!);
      steps.ArrowLeft = () => outwards(place, order[place]!);
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !steps[event.key]) return;
    event.preventDefault();
    steps[event.key]!();
  };
  return { toggle, onKeyDown };
}
