import type { ComponentChildren } from "preact";
import type { Table } from "../api/types.ts";
import { type DrawnColumn, type Ready, tsv } from "./columns.ts";
import { exact, quantity } from "../format/numbers.ts";
import { useTableScope } from "./table_scope.ts";
import { slicesIn } from "../app/router.ts";
import { copy } from "../ui/copy.ts";
import { EventDetail } from "../ui/event_detail.tsx";
import { ShowInTimeline } from "../ui/timeline_link.tsx";
import { Stack } from "../ui/stack.tsx";

/** The column with the byte offset of a row's event in the file. */
const PLACE = "first_byte";

const AMOUNTS = ["duration", "bytes", "instant"];

/** A value of the row, rounded and exact. */
function Value({ column: { title, kind, values }, row }: { column: DrawnColumn; row: number }) {
  const value = values[row];
  const isAmount = AMOUNTS.includes(kind) && typeof value === "number";
  return (
    <div class={kind === "stack" || String(value).length > 40 ? "wide" : ""}>
      <dt>{title}</dt>
      <dd>
        {kind === "stack" && typeof value === "string"
          ? <Stack text={value} />
          : isAmount
          ? `${quantity(value, kind)} `
          : exact(value, kind)}
        {isAmount && <span class="quiet">({exact(value, kind)})</span>}
      </dd>
    </div>
  );
}

/** One row in full, and below that what belongs to it. */
export function RowDetail(
  { ready, table, row, children }: { ready: Ready; table: Table; row: number; children: ComponentChildren },
) {
  const place = table.data[PLACE]?.[row];
  const slices = slicesIn(table.view, (column) => table.data[column]?.[row] ?? null);
  const scope = useTableScope();
  const isShown = scope.get("open") === "event";
  return (
    <>
      <dl>
        {ready.columns.map((column) => <Value key={column.name} column={column} row={row} />)}
      </dl>
      <button type="button" onClick={() => copy(ready.nameOf(row))}>Copy name</button>{" "}
      <button type="button" onClick={() => copy(tsv(table.columns, table.data, Uint32Array.of(row)))}>Copy row</button>
      {slices && (
        <>
          {" "}
          <ShowInTimeline slices={slices} />
        </>
      )}
      {typeof place === "number" && (
        <>
          {" "}
          <button type="button" onClick={() => scope.go({ open: isShown ? "1" : "event" })}>
            {isShown ? "Hide" : "Show"} the event at byte {place}
          </button>
          {isShown && <EventDetail offset={place} />}
        </>
      )}
      {children}
    </>
  );
}
