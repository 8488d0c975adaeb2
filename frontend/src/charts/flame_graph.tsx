import { useMemo, useRef, useState } from "preact/hooks";
import type { DrawnColumn, Ready } from "../table/columns.ts";
import { sharedColumns } from "../api/pictures.ts";
import { exact, percent, quantity } from "../format/numbers.ts";
import { type TableScope, useTableScope } from "../table/table_scope.ts";
import { type Box, flameBoxes, inPreorder, totalOf, type Tree } from "../table/tree.ts";
import { colorsOf } from "./donut.tsx";
import { fitText, textWidth, useWidth } from "../ui/measure.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { hideTip, showTip } from "../ui/tip.tsx";
import { revealRow } from "../table/tree_table.tsx";

const ROW = 20;
const LEAST = 2; // pixels of the narrowest box
const MIN_LABELED = 28;
const MOST = 4000; // boxes: with more the narrowest are left out

/** Columns that give the boxes their widths: the weight first. */
function widthColumns(ready: Ready, { weight, picture }: DrawnTable["entry"]): DrawnColumn[] {
  const candidates = [weight, ...sharedColumns(picture)].map((name) =>
    ready.columns.find((column) => column.name === name)
  );
  return candidates.filter((column) => column !== undefined && column.bar !== null) as DrawnColumn[];
}

/** What boxes of one color have in common: the package of a function, the class of a module, the name of the rest. */
function familyOf(ready: Ready, row: number): string {
  const file = ready.columns.find(({ name }) => name === "file")?.values[row];
  if (typeof file === "string") return file.split(/[/\\]/).slice(0, 2).join("/");
  return ready.nameOf(row).replace(/(_\d+|:.*| .*)$/, "");
}

function colorsByFamily(ready: Ready, boxes: Box[]): Map<string, string> {
  const families = [...new Set(boxes.map(({ row }) => familyOf(ready, row)))].sort();
  const colors = colorsOf(families);
  return new Map(families.map((family, i) => [family, colors[i]!]));
}

/** As many boxes as there is room for. */
function drawnBoxes(tree: Tree, preorder: Uint32Array, values: (number | null)[], root: number, width: number): Box[] {
  for (let least = LEAST / Math.max(width, 1);; least *= 2) {
    const boxes = flameBoxes(tree, preorder, values, root, least);
    if (boxes.length <= MOST || least > 1) return boxes;
  }
}

function tipText(ready: Ready, columns: DrawnColumn[], row: number, whole: number): string {
  const place = ready.columns.filter(({ name, values }) =>
    (name === "file" || name === "line") && values[row] !== null
  );
  const lines = [ready.nameOf(row), place.map(({ values }) => String(values[row])).join(":")];
  for (const { title, kind, values } of columns) {
    const value = values[row];
    if (typeof value === "number") lines.push(`${title} ${quantity(value, kind)} (${exact(value, kind)})`);
  }
  const value = columns[0]!.values[row];
  if (typeof value === "number") lines.push(`${percent(value / whole)} % of all`);
  return lines.filter(Boolean).join("\n");
}

/** The neighboring, parent or child box, for the arrow keys. */
function neighbor(boxes: Box[], { parent }: Tree, row: number, key: string): Box | undefined {
  const at = boxes.findIndex((box) => box.row === row);
  const here = boxes[at];
  if (!here) return boxes[0];
  if (key === "ArrowUp") return boxes.find((box) => box.row === parent[row]);
  if (key === "ArrowDown") return boxes.find((box) => parent[box.row] === row);
  const level = boxes.filter((box) => box.level === here.level);
  return level[level.indexOf(here) + (key === "ArrowRight" ? 1 : -1)];
}

/** Which column gives the widths. */
function Widths({ columns, chosen }: { columns: DrawnColumn[]; chosen: DrawnColumn }) {
  const scope = useTableScope();
  if (columns.length < 2) return null;
  return (
    <label>
      Width{" "}
      <select
        value={chosen.name}
        onChange={({ currentTarget: { value } }) => scope.go({ width: value === columns[0]!.name ? "" : value })}
      >
        {columns.map(({ name, title }) => <option key={name} value={name}>{title}</option>)}
      </select>
    </label>
  );
}

/** A box's name, if enough of it fits. */
function Label({ name, room, x, y }: { name: string; room: number; x: number; y: number }) {
  const text = fitText(name, room, 12);
  return textWidth(text, 12) <= room ? <text x={x} y={y}>{text}</text> : null;
}

interface BoxesProps {
  ready: Ready;
  boxes: Box[];
  width: number;
  /** The rows that match the filter; null without a filter. */
  matches: Set<number> | null;
  root: number;
  focused: number;
}

function Boxes({ ready, boxes, width, matches, root, focused }: BoxesProps) {
  const colors = useMemo(() => colorsByFamily(ready, boxes), [ready, boxes]);
  return boxes.map(({ row, level, left, width: share }) => {
    const wide = Math.max(1, share * width - 1);
    const [x, y] = [Math.round(10 * left * width) / 10, level * ROW];
    const isAround = root >= 0 && row !== root && share === 1 && level < ready.tree!.level[root]!;
    const kinds = [isAround && "around", matches && (matches.has(row) ? "match" : "dim"), row === focused && "focused"];
    return (
      <g key={row} data-row={row} class={kinds.filter(Boolean).join(" ")}>
        <rect
          x={x}
          y={y}
          width={wide.toFixed(1)}
          height={ROW - 1}
          rx="2"
          style={{ fill: `color-mix(in oklab, ${colors.get(familyOf(ready, row))} 42%, var(--surface))` }}
        />
        {wide > MIN_LABELED && <Label name={ready.nameOf(row)} room={wide - 6} x={x + 4} y={y + 14} />}
      </g>
    );
  });
}

/** What keys, clicks and the pointer do. */
function useFlameInput(scope: TableScope, tree: Tree, boxes: Box[], describe: (row: number) => string) {
  const [focused, focus] = useState(-1);
  const zoom = (row: number) => {
    scope.go({ zoom: row < 0 ? "" : String(row) });
    if (row >= 0) revealRow(scope, tree, row);
  };
  const rowAt = (event: Event) => {
    const box = event.target instanceof Element ? event.target.closest("[data-row]") : null;
    return box ? Number(box.getAttribute("data-row")) : -1;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") zoom(-1);
    else if (event.key === "Enter" && focused >= 0) zoom(focused);
    else if (event.key.startsWith("Arrow")) focus(neighbor(boxes, tree, focused, event.key)?.row ?? focused);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onPointerMove = (event: PointerEvent) => {
    const row = rowAt(event);
    if (row >= 0) showTip(describe(row), event.clientX + 12, event.clientY + 8);
    else hideTip();
  };
  const onClick = (event: MouseEvent) => {
    const row = rowAt(event);
    if (row >= 0 && event.detail < 2) zoom(row);
  };
  const onDblClick = () => zoom(-1);
  return { focused, zoom, handlers: { onKeyDown, onPointerMove, onPointerLeave: hideTip, onClick, onDblClick } };
}

/** The column that gives the boxes their widths, and everything derived from it. */
function useBoxes({ ready, entry, rows }: DrawnTable, tree: Tree, width: number) {
  const scope = useTableScope();
  const columns = widthColumns(ready, entry);
  const chosen = columns.find(({ name }) => name === scope.get("width")) ?? columns[0];
  const values = (chosen?.values ?? []) as (number | null)[];
  const root = scope.get("zoom") && Number(scope.get("zoom")) < ready.count ? Number(scope.get("zoom")) : -1;
  const all = useMemo(() => Uint32Array.from({ length: ready.count }, (_, row) => row), [ready]);
  const preorder = useMemo(() => inPreorder(tree, all), [tree, all]);
  const boxes = useMemo(() => drawnBoxes(tree, preorder, values, root, width), [tree, values, root, width]);
  const matches = useMemo(() => (rows.rows.length < ready.count ? new Set(rows.rows) : null), [rows.rows, ready]);
  const whole = useMemo(() => totalOf(tree, all, values), [tree, all, values]);
  return { columns, chosen, root, boxes, matches, whole };
}

/** The rows as boxes in boxes, the outermost on top. Click or Enter gives a row the whole width, Escape resets. */
export function FlameGraph({ tree, ...of }: DrawnTable & { tree: Tree }) {
  const { ready, entry } = of;
  const scope = useTableScope();
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { columns, chosen, root, boxes, matches, whole } = useBoxes(of, tree, width);
  const shown = chosen ? [chosen, ...columns.filter((column) => column !== chosen)] : [];
  const { focused, zoom, handlers } = useFlameInput(scope, tree, boxes, (row) => tipText(ready, shown, row, whole));
  const drawn = useMemo( // thousands of boxes: only when they change, not with every change of the address
    () => <Boxes ready={ready} boxes={boxes} width={width} matches={matches} root={root} focused={focused} />,
    [ready, boxes, width, matches, root, focused],
  );
  if (!chosen) return null;
  const height = (boxes.reduce((most, { level }) => Math.max(most, level), 0) + 1) * ROW;
  return (
    <figure class="card flame">
      <figcaption>
        <b>{chosen.title}</b> <span class="quiet">{quantity(whole, chosen.kind)} in all · click zooms, Esc resets</span>
        <span class="space" />
        <Widths columns={columns} chosen={chosen} />
        <button type="button" disabled={root < 0} onClick={() => zoom(-1)}>Show all</button>
        <SavePicture title={`by ${chosen.title}`} />
      </figcaption>
      <div
        ref={box}
        class="flames"
        role="group"
        tabIndex={0}
        aria-label={`Flame graph by ${chosen.title}`}
        {...handlers}
      >
        <svg width={width} height={height} role="img" aria-label={`${entry.title} by ${chosen.title}`}>
          {drawn}
        </svg>
        <p class="hidden" role="status">{focused >= 0 ? tipText(ready, shown, focused, whole) : ""}</p>
      </div>
    </figure>
  );
}
