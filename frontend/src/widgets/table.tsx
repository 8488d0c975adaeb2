import type { ComponentChildren, RefObject, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type DrawnColumn, isText, type Ready, widest } from "../columns.ts";
import { cell, exact } from "../format.ts";
import { type Slot, useSlot } from "../slot.ts";
import { useKeys } from "./keys.ts";
import { fitted, textWidth, useWidth } from "./measure.ts";
import { type Rows, sortBy } from "./rows.ts";

const ROW = 26;
const HEAD = 45;
const ABOVE = 12;
const BELOW = 6;
const AT_ONCE = 8; // rows by which what is drawn moves on: drawing for each row would make each frame dear
const MOST_KEPT = 1000;
const PADDING = 34;

/** The least width in which a heading, which is bold when sorted by, takes two lines. */
function headingWidth({ title, scale }: DrawnColumn): number {
  const words = `${title} ${scale.unit}`.trim().split(" ");
  const splits = words.map((_, i) => [words.slice(0, i + 1).join(" "), words.slice(i + 1).join(" ")]);
  return Math.min(...splits.map((lines) => Math.max(...lines.map((line) => textWidth(line, 12) * 1.12))));
}

/** Pixels of each column: what its longest number needs; texts that are cut get what is left, the first one first. */
function widths(columns: DrawnColumn[], available: number, indented: number): number[] {
  const main = columns.findIndex(isText);
  const natural = columns.map((column, i) => {
    const needed = Math.max(headingWidth(column), textWidth(widest(column)), column.bar ? 66 : 0);
    return Math.ceil(needed + PADDING + (i === main ? indented : 0));
  });
  const most = (i: number) => (!isText(columns[i]!) ? Infinity : i === main ? 380 + indented : 240);
  const result = natural.map((width, i) => Math.min(width, most(i)));
  let left = available - result.reduce((sum, width) => sum + width, 0);
  for (const [i, width] of result.entries()) {
    if (!isText(columns[i]!) || left <= 0) continue;
    result[i] = Math.min(natural[i]!, width + left);
    left -= result[i]! - width;
  }
  const widestText = columns.reduce(
    (best, column, i) => isText(column) && !(result[best]! > result[i]!) ? i : best,
    -1,
  );
  if (widestText >= 0 && left > 0) result[widestText]! += left; // the table fills its box
  return result;
}

function Heading({ column, keys }: { column: DrawnColumn; keys: Rows["keys"] }) {
  const slot = useSlot();
  const place = keys.findIndex(({ name }) => name === column.name);
  const descending = keys[place]?.descending;
  const arrow = place < 0 ? "" : (descending ? "▼" : "▲") + (keys.length > 1 ? "₁₂"[place] : "");
  const tip = [column.doc, column.bar?.meaning, "Click to sort; shift-click to sort by this within the first."];
  return (
    <th
      scope="col"
      class={column.isNumeric ? "number" : ""}
      aria-sort={place < 0 ? undefined : descending ? "descending" : "ascending"}
    >
      <button
        type="button"
        aria-description={column.doc}
        data-tip={tip.filter(Boolean).join("\n")}
        onClick={(event) => sortBy(slot, keys, column, event.shiftKey)}
      >
        <span>
          {column.title}
          {column.scale.unit && <span class="quiet">{` ${column.scale.unit}`}</span>}
        </span>
        <span class="arrow" aria-hidden="true">{arrow}</span>
      </button>
    </th>
  );
}

/** Rows that lie in each other. */
export interface Folding {
  level: (row: number) => number;
  /** Whether the rows in it are shown; null if there are none. */
  isOpen: (row: number) => boolean | null;
  /** The row around it, or -1. */
  parent: (row: number) => number;
  turn: (row: number) => void;
}

/** Pixels by which a row's name stands further in; deep ones less, so that stacks stay readable. */
const indent = (level: number) => 18 + 14 * Math.min(level, 8) + 4 * Math.max(0, level - 8);

/** What folds and unfolds a row, before its name. */
function Fold({ row, folding, name }: { row: number; folding: Folding; name: string }) {
  const isOpen = folding.isOpen(row);
  const style = { marginLeft: `${indent(folding.level(row)) - 18}px` };
  if (isOpen === null) return <span class="turn" style={style} />;
  return (
    <button
      type="button"
      class="turn"
      tabIndex={-1}
      style={style}
      aria-label={`${isOpen ? "Fold" : "Unfold"} ${name}`}
      onClick={(event) => {
        event.stopPropagation();
        folding.turn(row);
      }}
    >
      {isOpen ? "▾" : "▸"}
    </button>
  );
}

interface CellProps {
  column: DrawnColumn;
  row: number;
  width: number;
  folding: Folding | null;
}

function Cell({ column, row, width, folding }: CellProps) {
  const value = column.values[row];
  const text = column.shown?.(row) ?? cell(value, column.kind, column.scale);
  const room = width - 18 - (folding ? indent(folding.level(row)) : 0);
  const shown = isText(column) ? fitted(text, room) : text;
  const share = column.bar && typeof value === "number" ? Math.max(0, value / column.bar.of) : 0;
  const style = share > 0 ? { "--share": share.toFixed(4) } : undefined;
  const tip = column.isNumeric ? exact(value, column.kind) : shown === text ? undefined : text;
  const kind = [column.isNumeric && "number", value === null && "missing", share > 0 && "share", column.tone?.(row)];
  return (
    <td class={kind.filter(Boolean).join(" ")} style={style} data-tip={tip}>
      {folding && <Fold row={row} folding={folding} name={text} />}
      {shown}
    </td>
  );
}

/** Where the rows lie: all of one height, but for the opened one, which has its detail below it. */
class Layout {
  constructor(readonly count: number, readonly opened: number, readonly detail: number) {}

  top(place: number): number {
    return place * ROW + (this.opened >= 0 && place > this.opened ? this.detail : 0);
  }

  at(y: number): number {
    const place = Math.floor(y / ROW);
    if (this.opened < 0 || place <= this.opened) return place;
    return Math.max(this.opened, Math.floor((y - this.detail) / ROW));
  }
}

/** The chosen row and whether it is open, which the address holds; and how keys and clicks change that. */
function useChoice(
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

interface RowProps {
  columns: DrawnColumn[];
  wide: number[];
  row: number;
  place: number;
  isChosen: boolean;
  isOpen: boolean;
  onToggle: (place: number) => void;
  folding: Folding | null;
}

const Row = ({ columns, wide, row, place, isChosen, isOpen, onToggle, folding }: RowProps) => (
  <tr
    id={`row-${row}`}
    class="row"
    aria-level={(folding?.level(row) ?? 0) + 1}
    aria-rowindex={place + 2}
    aria-selected={isChosen}
    aria-expanded={folding?.isOpen(row) ?? isOpen}
    onClick={() => getSelection()?.isCollapsed !== false && onToggle(place)}
  >
    {columns.map((column, i) => (
      <Cell key={column.name} column={column} row={row} width={wide[i]!} folding={i ? null : folding} />
    ))}
  </tr>
);

const Gap = ({ height, span }: { height: number; span: number }) => (
  <tr aria-hidden="true">
    <td class="gap" colSpan={span} style={{ height: `${height}px` }} />
  </tr>
);

/** What is below an opened row. Tells its height, since the table must know where the next rows begin. */
function Detail(
  { width, onHeight, children }: { width: number; onHeight: (height: number) => void; children: ComponentChildren },
) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => box.current && onHeight(box.current.offsetHeight));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return <div ref={box} style={{ width: `${width}px` }}>{children}</div>;
}

interface TableProps {
  ready: Ready;
  rows: Rows;
  label: string;
  /** What an opened row shows. */
  detail: (row: number) => ComponentChildren;
  /** How to fold rows that lie in each other. */
  folding?: Folding | null;
}

/** A table of any length: only the rows in sight are drawn. Keys: j, k or arrows select, Enter opens, ← → fold. */
export function DataTable({ ready, rows, label, detail, folding = null }: TableProps) {
  const slot = useSlot();
  const scroller = useRef<HTMLDivElement>(null);
  const available = useWidth(scroller);
  const [near, setNear] = useState(0);
  const [height, setHeight] = useState(0);
  const { columns } = ready;
  const order = rows.rows;
  const isTree = folding !== null;
  const indented = useMemo(
    () => (folding ? indent(order.reduce((most, row) => Math.max(most, folding.level(row)), 0)) : 0),
    [order, isTree],
  );
  const wide = useMemo(() => widths(columns, available, indented), [columns, available, indented]);
  const whole = wide.reduce((sum, width) => sum + width, 0);
  const chosen = slot.get("row") ? order.indexOf(Number(slot.get("row"))) : -1;
  const layout = new Layout(order.length, slot.get("open") ? chosen : -1, height);
  const first = Math.max(0, layout.at(near * AT_ONCE * ROW) - ABOVE);
  const last = Math.min(order.length, first + Math.ceil(innerHeight / ROW) + ABOVE + AT_ONCE + BELOW);
  const { toggle, onKeyDown } = useChoice(slot, order, scroller, (place) => layout.top(place), folding);
  useLayoutEffect(() => { // what was chosen elsewhere, such as in a picture, comes into sight
    const box = scroller.current!;
    const y = layout.top(chosen);
    const isInSight = y >= box.scrollTop && y + HEAD + ROW <= box.scrollTop + box.clientHeight;
    if (chosen >= 0 && !isInSight) box.scrollTop = y - box.clientHeight / 3;
  }, [slot.get("row")]);

  // A row that is the same object as before is not looked at again.
  const kept = useMemo(() => new Map<number, VNode>(), [columns, wide, order, chosen, layout.opened, folding, slot]);
  const drawnRow = (row: number, place: number): VNode => {
    const isOpen = place === layout.opened;
    const props = { columns, wide, row, place, isChosen: place === chosen, isOpen, onToggle: toggle, folding };
    if (kept.size > MOST_KEPT) kept.clear();
    if (!kept.has(row)) kept.set(row, <Row key={row} {...props} />);
    return kept.get(row)!;
  };
  const drawn = Array.from(order.subarray(first, last), (row, i) => [
    drawnRow(row, first + i),
    first + i === layout.opened && (
      <tr key="detail" aria-level={2}>
        <td class="detail" colSpan={columns.length}>
          <Detail width={Math.min(available, whole)} onHeight={setHeight}>{detail(row)}</Detail>
        </td>
      </tr>
    ),
  ]);
  return (
    <div
      class={`scroll ${whole > available ? "sideways" : ""}`}
      ref={scroller}
      onScroll={({ currentTarget }) => setNear(Math.floor(currentTarget.scrollTop / (AT_ONCE * ROW)))}
    >
      <table
        role="treegrid"
        tabIndex={0}
        onKeyDown={onKeyDown}
        aria-label={label}
        aria-rowcount={order.length + 1}
        aria-activedescendant={chosen >= first && chosen < last ? `row-${order[chosen]}` : undefined}
        style={{ width: `${whole}px` }}
      >
        <colgroup>{columns.map(({ name }, i) => <col key={name} style={{ width: `${wide[i]}px` }} />)}</colgroup>
        <thead>
          <tr>{columns.map((column) => <Heading key={column.name} column={column} keys={rows.keys} />)}</tr>
        </thead>
        <tbody>
          <Gap height={layout.top(first)} span={columns.length} />
          {drawn.flat()}
          <Gap height={layout.top(order.length) - layout.top(last)} span={columns.length} />
        </tbody>
      </table>
    </div>
  );
}
