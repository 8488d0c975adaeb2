import { type ComponentChildren, h, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Drawer } from "./drawer.tsx";
import { chosenWidths, setWidth } from "./column_choice.ts";
import { type DrawnColumn, leadingNames, type Ready, weightAfter } from "./columns.ts";
import { Layout, ROW } from "./row_layout.ts";
import { useTableScope } from "./table_scope.tsx";
import { useSize } from "../ui/measure.ts";
import type { Rows } from "./order.ts";
import { sortBy } from "./rows.ts";
import { type Folding, useRowSelection } from "./table_selection.ts";
import { HEAD, heights, indent, isInSight, sentencesInSight, widths } from "./table_layout.ts";
import { cellTip, Row } from "./table_rows.tsx";

const ABOVE = 5; // rows drawn above the visible ones
const BELOW = 8;
const AT_ONCE = 2; // rows per scroll update
const REST_MS = 200; // after the last movement: the elements are put in the order of the rows
const FAR = 100; // rows scrolled at once: those in sight are drawn first, as they are in another order

const NARROW = 1100; // pixels of a page whose drawer covers the table

const KEY_PX = 16;
const WIDTH_KEYS = "Drag its edge or press Alt with ← → to resize it; double-click the edge to undo.";

/** Follows the pointer with a line, and makes the column so wide when it is released. */
function dragEdge(event: PointerEvent, heading: HTMLElement, widen: (by: number) => void) {
  const edge = event.currentTarget as HTMLElement, from = event.clientX;
  const room = (x: number) => Math.max(40 - heading.offsetWidth, x - from);
  edge.setPointerCapture(event.pointerId);
  edge.onpointermove = ({ clientX }) => (edge.style.translate = `${room(clientX)}px`);
  edge.onlostpointercapture = () => edge.onpointerup = edge.onpointermove = edge.onlostpointercapture = null;
  edge.onpointerup = ({ clientX }) => {
    edge.style.translate = "";
    if (clientX !== from) widen(room(clientX));
  };
}

function Heading({ column, keys }: { column: DrawnColumn; keys: Rows["keys"] }) {
  const scope = useTableScope();
  const heading = useRef<HTMLTableCellElement>(null);
  const place = keys.findIndex(({ name }) => name === column.name);
  const descending = keys[place]?.descending;
  const arrow = place < 0 ? "" : (descending ? "▼" : "▲") + (keys.length > 1 ? "₁₂"[place] : "");
  const tip = [column.doc, column.bar?.meaning, "Click sorts, shift-click sorts by this second.", WIDTH_KEYS];
  const widen = (by: number) => setWidth(scope, column.name, heading.current!.offsetWidth + by);
  const onKeyDown = (event: KeyboardEvent) => {
    const by = event.altKey && { ArrowLeft: -KEY_PX, ArrowRight: KEY_PX }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    widen(by);
  };
  return (
    <th
      ref={heading}
      scope="col"
      role="columnheader"
      class={`${column.isNumeric ? "number" : ""} ${column.bar ? "share" : ""}`}
      aria-sort={place < 0 ? undefined : descending ? "descending" : "ascending"}
    >
      <button
        type="button"
        aria-description={column.doc}
        data-tip={tip.filter(Boolean).join("\n")}
        onClick={(event) => sortBy(scope, keys, column, event.shiftKey)}
        onKeyDown={onKeyDown}
      >
        <span>
          {column.title}
          {column.scale.unit && <span class="quiet">{` ${column.scale.unit}`}</span>}
        </span>
        <span class="arrow" aria-hidden="true">{arrow}</span>
      </button>
      <i
        class="edge"
        onPointerDown={(event) => dragEdge(event, heading.current!, widen)}
        onDblClick={() => setWidth(scope, column.name, null)}
      />
    </th>
  );
}

/** The pointer handlers of all rows: a click opens or folds, hovering sets the cell's tooltip. */
function usePointer(columns: DrawnColumn[], order: Uint32Array, folding: Folding | null, toggle: (at: number) => void) {
  const placeOf = (target: EventTarget | null, body: EventTarget) => {
    const row = target instanceof Element ? target.closest<HTMLElement>("tr.row") : null;
    return row?.parentElement === body ? Number(row.dataset.place) : -1;
  };
  const onClick = ({ target, currentTarget }: MouseEvent) => {
    const place = placeOf(target, currentTarget!);
    if (place < 0) return;
    if (folding && (target as Element).closest("button.turn")) folding.toggle(order[place]!);
    else if (getSelection()?.isCollapsed !== false) toggle(place);
  };
  const onPointerOver = ({ target, currentTarget }: PointerEvent) => {
    const place = placeOf(target, currentTarget!);
    const cell = place < 0 ? null : (target as Element).closest("td");
    if (!cell) return;
    const tip = cellTip(columns[cell.cellIndex]!, order[place]!, cell.lastChild?.textContent ?? "");
    if (tip) cell.dataset.tip = tip;
    else delete cell.dataset.tip;
  };
  return { onClick, onPointerOver };
}

type Movement = "none" | "near" | "far";

/** The scroll position in rows, how far its rows have just moved, and whether there is more at its right. */
function useScrolling(scroller: RefObject<HTMLElement | null>, order: Uint32Array) {
  const [hasMore, setMore] = useState(true);
  const [scrolledRow, setScrolledRow] = useState(0);
  const [scrolled, move] = useState<Movement>("none");
  const [restingOrder, rest] = useState(order);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const waitForRest = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      move("none");
      rest(order);
    }, REST_MS);
  };
  useEffect(() => {
    if (order !== restingOrder) waitForRest();
    return () => clearTimeout(timer.current);
  }, [order]);
  const onScroll = () => {
    const box = scroller.current!;
    setMore(box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    const now = AT_ONCE * Math.floor(box.scrollTop / (AT_ONCE * ROW));
    if (now === scrolledRow) return;
    setScrolledRow(now);
    move(Math.abs(now - scrolledRow) > FAR ? "far" : "near");
    waitForRest();
  };
  const movement: Movement = scrolled === "none" && order !== restingOrder ? "far" : scrolled;
  return { scrolledRow, movement, hasMore, onScroll };
}

/** The rows and the layout at the current scroll position. */
interface VisibleRows {
  layout: Layout;
  /** Places of the first row that is drawn, and of the one after the last. */
  first: number;
  last: number;
  /** How many are drawn where there are enough; also how many elements take turns. */
  span: number;
  /** Whether a row at a place is out of sight. */
  isOutside: (place: number) => boolean;
  chosen: number;
}

function visibleRows(count: number, scrolledRow: number, pixels: number, chosen: number, layout: Layout): VisibleRows {
  const inSight = Math.ceil((pixels || innerHeight) / ROW) + AT_ONCE, span = inSight + ABOVE + BELOW;
  const top = layout.at(scrolledRow * ROW), bottom = layout.at((scrolledRow + inSight) * ROW);
  const first = Math.max(0, Math.min(top - ABOVE, count - span));
  const isOutside = (place: number) => place < top || place > bottom;
  return { layout, first, last: Math.min(count, first + span), span, isOutside, chosen };
}

interface BodyProps {
  columns: DrawnColumn[];
  columnWidths: number[];
  order: Uint32Array;
  visible: VisibleRows;
  folding: Folding | null;
  movement: Movement;
  toggle: (place: number) => void;
  isOpen: boolean;
}

/** The visible rows; elements are reused, so that scrolling creates and moves none. */
function Body({ columns, columnWidths, order, visible, folding, movement, toggle, isOpen }: BodyProps) {
  const { layout, first, last, span, isOutside, chosen } = visible;
  const pointer = usePointer(columns, order, folding, toggle);
  const drawn = Array.from(order.subarray(first, last), (row, i) => {
    const place = first + i;
    const isUnfolded = folding?.isOpen(row) ?? null;
    return {
      key: place % span,
      ...{ columns, columnWidths, row, place, top: layout.top(place), height: layout.height(place) },
      isChosen: place === chosen,
      isWaiting: movement === "far" && isOutside(place),
      ...{ isExpanded: isUnfolded ?? (isOpen && place === chosen), level: folding?.level(row) ?? null, isUnfolded },
    };
  });
  // Moving an element costs as much as creating one: the order of elements is restored once scrolling stops.
  if (movement !== "none") drawn.sort((a, b) => a.key - b.key);
  return (
    <tbody role="rowgroup" style={{ height: `${layout.top(order.length)}px` }} {...pointer}>
      {drawn.map(({ key, ...props }) => <Row key={key} {...props} />)}
    </tbody>
  );
}

/** Scrolls to a row that was selected elsewhere, such as in a chart. */
function useReveal(scroller: RefObject<HTMLDivElement | null>, layout: Layout, chosen: number, row: string) {
  useLayoutEffect(() => {
    const box = scroller.current!;
    const y = layout.top(chosen);
    const isVisible = y >= box.scrollTop && y + HEAD + layout.height(chosen) <= box.scrollTop + box.clientHeight;
    if (chosen >= 0 && !isVisible) box.scrollTop = y - box.clientHeight / 3;
  }, [row]);
}

/** The columns' widths in the width that there is; the user's own come first. */
function useWidths(columns: DrawnColumn[], order: Uint32Array, folding: Folding | null, available: number): number[] {
  const chosen = useTableScope().get("widths");
  const isTree = folding !== null;
  const indented = useMemo(
    () => (folding ? indent(order.reduce((most, row) => Math.max(most, folding.level(row)), 0)) : 0),
    [order, isTree],
  );
  return useMemo(() => {
    const own = chosenWidths(chosen);
    return widths(columns, available, indented).map((width, i) => own.get(columns[i]!.name) ?? width);
  }, [columns, available, indented, chosen]);
}

const Head = ({ columns, keys }: { columns: DrawnColumn[]; keys: Rows["keys"] }) => (
  <thead role="rowgroup">
    <tr role="row">{columns.map((column) => <Heading key={column.name} column={column} keys={keys} />)}</tr>
  </thead>
);

interface TableProps {
  ready: Ready;
  rows: Rows;
  label: string;
  /** What the drawer shows of a row, in addition to these columns of the table. */
  detail: (row: number, inSight: DrawnColumn[]) => ComponentChildren;
  /** How to fold rows that lie in each other. */
  folding?: Folding | null;
}

/** A table of any length: only visible rows are drawn. Keys: j, k or arrows select, Enter opens, ← → fold. */
export function DataTable(
  { ready: { columns: all }, rows: { rows: order, keys }, label, detail, folding = null }: TableProps,
) {
  const scope = useTableScope(), { weight, picture, key } = scope.entry;
  const isNarrow = innerWidth < NARROW;
  const first = scope.get("sort") ? weight : keys[0]?.name ?? weight; // what the user sorts by stays where it is
  const scroller = useRef<HTMLDivElement>(null);
  const size = useSize(scroller, "table");
  const columns = useMemo(
    () => {
      // The edges of bins stay together.
      const isFar = isNarrow && picture?.kind !== "histogram" || !isInSight(all, first, size.width);
      const afterNames = weightAfter(all, first, leadingNames(all, key));
      const near = isInSight(afterNames, first, size.width) ? afterNames : weightAfter(all, first);
      return sentencesInSight(isFar ? near : all, size.width, first);
    },
    [all, isNarrow, first, size.width],
  );
  const { scrolledRow, movement, hasMore, onScroll } = useScrolling(scroller, order);
  const columnWidths = useWidths(columns, order, folding, size.width);
  const whole = Math.floor(columnWidths.reduce((sum, width) => sum + width, 0)); // without the error of the sum
  const chosen = scope.get("row") ? order.indexOf(Number(scope.get("row"))) : -1;
  const high = useMemo(() => heights(columns, columnWidths, order), [columns, columnWidths, order]);
  const layout = new Layout(order.length, high);
  const visible = visibleRows(order.length, scrolledRow, size.height, chosen, layout);
  const { toggle, move, close, onKeyDown } = useRowSelection(scope, order, scroller, layout, folding);
  const isOpen = chosen >= 0 && scope.get("open") !== "";
  useReveal(scroller, layout, chosen, scope.get("row"));
  const head = useMemo(() => <Head columns={columns} keys={keys} />, [columns, keys, scope]);
  let right = 0;
  const inSight = isNarrow ? [] : columns.filter((_, i) => (right += columnWidths[i]!) < size.width + 2);
  return (
    <div class={`fading ${whole > size.width && hasMore ? "more" : ""} ${isOpen ? "opened" : ""}`}>
      <div class={`scroll ${whole > size.width ? "sideways" : ""}`} ref={scroller} onScroll={onScroll}>
        <table
          role="treegrid"
          tabIndex={0}
          onKeyDown={onKeyDown}
          aria-label={label}
          aria-rowcount={order.length + 1}
          aria-activedescendant={chosen >= visible.first && chosen < visible.last ? `row-${order[chosen]}` : undefined}
          style={{ width: `${whole}px`, gridTemplateColumns: columnWidths.map((width) => `${width}px`).join(" ") }}
        >
          {head}
          <Body {...{ columns, columnWidths, order, visible, folding, movement, toggle, isOpen }} />
        </table>
      </div>
      {isOpen && (
        <Drawer label={label} place={chosen} count={order.length} move={move} close={close}>
          {detail(order[chosen]!, inSight)}
        </Drawer>
      )}
    </div>
  );
}
