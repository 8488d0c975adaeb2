import { useLayoutEffect, useRef } from "preact/hooks";
import type { Table } from "../api.ts";
import { type Ready, tsv } from "../columns.ts";
import { exact, quantity } from "../format.ts";
import { address, go } from "../state.ts";
import { copy } from "./copy.ts";
import { EventDetail } from "./event_detail.tsx";

/** The column that says where in the file a row's event begins. */
const PLACE = "first_byte";

/** One row in full, below it. Tells its height, since the table must know where the next rows begin. */
export function RowDetail(
  { ready, table, row, width, onHeight }: {
    ready: Ready;
    table: Table;
    row: number;
    width: number;
    onHeight: (height: number) => void;
  },
) {
  const box = useRef<HTMLDivElement>(null);
  const place = table.data[PLACE]?.[row];
  const isShown = address.value.open === "event";
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => box.current && onHeight(box.current.offsetHeight));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={box} style={{ width: `${width}px` }}>
      <dl>
        {ready.columns.map(({ name, title, kind, values }) => {
          const value = values[row];
          const isAmount = kind === "duration" || kind === "bytes" || kind === "instant";
          return (
            <div key={name} class={String(value).length > 40 ? "wide" : ""}>
              <dt>{title}</dt>
              <dd>
                {isAmount && typeof value === "number" ? `${quantity(value, kind)} ` : exact(value, kind)}
                {isAmount && typeof value === "number" && <span class="quiet">({exact(value, kind)})</span>}
              </dd>
            </div>
          );
        })}
      </dl>
      <button type="button" onClick={() => copy(ready.nameOf(row))}>Copy name</button>{" "}
      <button type="button" onClick={() => copy(tsv(table.columns, table.data, Uint32Array.of(row)))}>Copy row</button>
      {typeof place === "number" && (
        <>
          {" "}
          <button type="button" onClick={() => go({ open: isShown ? "1" : "event" })}>
            {isShown ? "Hide" : "Show"} the event at byte {place}
          </button>
          {isShown && <EventDetail offset={place} />}
        </>
      )}
    </div>
  );
}
