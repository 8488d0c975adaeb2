import { type ComponentChildren, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { decimal } from "../format/numbers.ts";

interface DrawerProps {
  label: string;
  /** The row's place, and how many rows the table has. */
  place: number;
  count: number;
  move: (by: number) => void;
  close: () => void;
  children: ComponentChildren;
}

/** The details of the opened row, next to the table. A narrow page has them instead of the table, with the focus. */
export function Drawer({ label, place, count, move, close, children }: DrawerProps) {
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const drawer = box.current!, table = drawer.parentElement!.querySelector("table")!;
    if (getComputedStyle(drawer).position === "fixed") drawer.focus();
    return () => {
      const { activeElement: active, body } = document;
      if (active === body || drawer.contains(active)) table.focus();
    };
  }, []);
  return (
    <section class="row-drawer" aria-label={`Details of a row of ${label}`} ref={box} tabIndex={-1}>
      <div class="row-buttons">
        <span class="quiet">{decimal(place + 1)} of {decimal(count)}</span>
        <button
          type="button"
          disabled={!place}
          aria-label="Previous row"
          data-tip="Previous row: k"
          onClick={() => move(-1)}
        >
          ↑
        </button>
        <button
          type="button"
          disabled={place + 1 === count}
          aria-label="Next row"
          data-tip="Next row: j"
          onClick={() => move(1)}
        >
          ↓
        </button>
        <button type="button" aria-label="Close" data-tip="Close: Esc" onClick={close}>✕</button>
      </div>
      {children}
    </section>
  );
}
