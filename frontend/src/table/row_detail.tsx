import { type ComponentChildren, h } from "preact";
import type { Table } from "../api/types.ts";
import { type DrawnColumn, isProse, isText, type Ready, tsv } from "./columns.ts";
import { exact, quantity } from "../format/numbers.ts";
import { functionName } from "../format/readable_names.ts";
import { useTableScope } from "./table_scope.tsx";
import { slicesIn } from "../app/router.ts";
import { Copy, DetailsHead, Fact } from "../ui/details.tsx";
import { EventSection } from "../ui/event_detail.tsx";
import { ShowInTimeline } from "../ui/timeline_link.tsx";
import { Stack } from "../ui/stack.tsx";

const LONG = 40; // letters that a table may not show

function valueText({ kind, values }: DrawnColumn, row: number) {
  const value = values[row];
  if (kind === "stack" && typeof value === "string") return <Stack text={value} />;
  if (kind === "text" && typeof value === "string") return functionName(value);
  return typeof value === "number" ? quantity(value, kind) : exact(value, kind);
}

interface RowDetailProps {
  ready: Ready;
  table: Table;
  row: number;
  /** The columns that the table shows. */
  inSight: DrawnColumn[];
  children?: ComponentChildren;
}

/** What the table doesn't show of a row, and below that what belongs to it. */
export function RowDetail({ ready, table, row, inSight, children }: RowDetailProps) {
  const place = table.data[table.columns.find(({ shown_as }) => shown_as === "offset")?.name ?? ""]?.[row];
  const slices = slicesIn(table.view, (column) => table.data[column]?.[row] ?? null);
  const scope = useTableScope();
  const isShown = scope.get("open") === "event";
  const [first] = ready.columns;
  const name = first?.kind === "text" ? String(first.values[row] ?? "") : ready.nameOf(row);
  const isLong = (column: DrawnColumn) =>
    isText(column) && !isProse(column) && String(column.values[row]).length > LONG;
  const others = ready.columns.filter((column) =>
    (column !== first || column.kind === "stack") && column.values[row] !== null &&
    (!inSight.includes(column) || isLong(column))
  );
  return (
    <article class="details" aria-label={name}>
      <DetailsHead short={first?.shown?.(row) ?? name} full={name}>
        <div class="buttons">
          <Copy text={name} label="Copy name" />
          <Copy text={tsv(table.columns, table.data, Uint32Array.of(row))} label="Copy row" />
          {slices && <ShowInTimeline slices={slices} />}
        </div>
      </DetailsHead>
      {others.length > 0 && (
        <dl class="facts">
          {others.map((column) => (
            <Fact key={column.name} title={column.title} tip={exact(column.values[row], column.kind)}>
              {valueText(column, row)}
            </Fact>
          ))}
        </dl>
      )}
      {children}
      {typeof place === "number" && (
        <EventSection
          isShown={isShown}
          show={(isShown) => scope.go({ open: isShown ? "event" : "1" })}
          offset={place}
        >
          the event at byte {place}
        </EventSection>
      )}
    </article>
  );
}
