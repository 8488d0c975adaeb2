import { Fragment, h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { sharedColumns } from "../api/pictures.ts";
import type { PictureOf } from "../api/types.ts";
import { decimal, exact, percent, plural, quantity } from "../format/numbers.ts";
import type { DrawnColumn, Ready } from "../table/columns.ts";
import type { DrawnTable } from "../table/rows.ts";
import { Menu } from "../ui/choice.tsx";
import { SavePicture } from "../table/save.tsx";
import { useTableScope } from "../table/table_scope.tsx";
import { outermost, type Tree } from "../table/tree.ts";
import { revealRow } from "../table/tree_table.tsx";
import { Segments } from "../ui/segments.tsx";
import { hideTip, showTip } from "../ui/tip.tsx";
import type { FunctionTime } from "./call_tree.ts";
import { type BoxRef, FlameView, type Look, ROW, type Scene } from "./flame_canvas.ts";
import {
  boxOf,
  type Calls,
  callScene,
  functionsOf,
  labelOf,
  layersScene,
  lineOf,
  type Mode,
  mostEqualLayers,
  neighbor,
  nodeOf,
  rowOf,
  sandwichScene,
  shownCalls,
  wayTo,
} from "./flame_scene.ts";

const TALLEST = 22; // lines before the box scrolls
const MOST_FUNCTIONS = 200; // in the list next to a sandwich
const MOST_CRUMBS = 6;

/** Boxes of one kind have one color; the program's own functions and its operators stand out. */
const COLORS: Record<string, [color: string, percent: number]> = {
  function: ["--python", 45],
  library: ["--python", 18],
  operator: ["--cpu-exec", 42],
  module: ["--module", 50],
  Kernel: ["--kernel", 50],
  Communication: ["--communication", 45],
  Memcpy: ["--memcpy", 45],
  Memset: ["--memset", 60],
  Runtime: ["--runtime", 50],
  annotation: ["--annotation", 45],
  DataLoader: ["--dataloader", 45],
  Operator: ["--cpu-exec", 42],
  Module: ["--module", 50],
  Python: ["--python", 45],
  "": ["--other", 50],
};
const KINDS = Object.keys(COLORS);
const FILLS = Object.values(COLORS).map(([color, share]) =>
  `color-mix(in srgb, var(${color}) ${share}%, var(--surface))`
);

/** Columns that give the boxes their widths: the weight first. */
function widthColumns(ready: Ready, { weight, picture }: DrawnTable["entry"]): DrawnColumn[] {
  const candidates = [weight, ...sharedColumns(picture)].map((name) =>
    ready.columns.find((column) => column.name === name)
  );
  return candidates.filter((column) => column !== undefined && column.bar !== null) as DrawnColumn[];
}

/** The color of each row; without kinds all have one. */
function colorPicker(ready: Ready, color: string): (row: number) => number {
  const kinds = ready.columns.find(({ name }) => name === "kind")?.values;
  const byKind = kinds?.map((kind) => Math.max(KINDS.indexOf(String(kind)), -1)) ?? [];
  return (row) => kinds ? (byKind[row]! < 0 ? KINDS.length - 1 : byKind[row]!) : KINDS.indexOf(color);
}

function placeOf(ready: Ready, row: number): string {
  const parts = ready.columns.filter(({ name, values }) =>
    (name === "file" || name === "line") && values[row] !== null
  );
  return parts.map(({ values }) => String(values[row])).join(":");
}

/** Everything that the flame graph is drawn from. */
interface Flame {
  ready: Ready;
  columns: DrawnColumn[];
  chosen: DrawnColumn;
  mode: Mode;
  /** The mode unless another one is chosen. */
  usual: Mode;
  /** How many equal layers are merged at most; 0: the rows are no modules. */
  layers: number;
  calls: Calls;
  scene: Scene;
  functions: FunctionTime[];
  /** The function of a sandwich. */
  name: number;
  /** The number and time of the roots that are folded away, or would be. */
  folded: { word: string; roots: number[]; isShown: boolean };
}

function tipText({ ready, columns, chosen, scene, calls }: Flame, at: BoxRef): string {
  const part = scene.parts[at.part]!, { tree, boxes } = part, row = rowOf(scene, at);
  const value = tree.value[boxes.node[at.box]!]!;
  const lines = [labelOf(part, at.box, ready.nameOf), placeOf(ready, row)];
  const isRow = scene.parts.length === 1 && !tree.count;
  for (const { title, kind, values } of isRow ? [chosen, ...columns.filter((column) => column !== chosen)] : []) {
    const own = values[row];
    if (typeof own === "number") lines.push(`${title} ${quantity(own, kind)} (${exact(own, kind)})`);
  }
  if (!isRow) lines.push(`${chosen.title} ${quantity(value, chosen.kind)} (${exact(value, chosen.kind)})`);
  const layers = tree.count?.[boxes.node[at.box]!] ?? 1;
  if (layers > 1) lines.push(`Mean ${quantity(value / layers, chosen.kind)}`);
  lines.push(`${percent(value / calls.total)} % of all`);
  if (boxes.calls[at.box]! > 1) lines.push("A click unfolds these calls.");
  return lines.filter(Boolean).join("\n");
}

/** Which column gives the widths. */
function Widths({ columns, chosen }: { columns: DrawnColumn[]; chosen: DrawnColumn }) {
  const scope = useTableScope();
  if (columns.length < 2) return null;
  return (
    <Menu
      title="Width"
      value={chosen.name}
      options={columns.map(({ name, title }) => [name, title])}
      onPick={(name) => scope.go({ width: name === columns[0]!.name ? "" : name })}
    />
  );
}

const MODES = [
  ["layers", "Equal layers", "Modules of one class in one place as one box, with the sum of their times"],
  ["heavy", "Left heavy", "Callees side by side, the longest first"],
  ["calls", "In order", "Callees in the order of their calls"],
  ["sandwich", "Sandwich", "One function: its callers above, its callees below; recursive calls count once"],
] as const;

/** Equal layers are merged from this many on, until another way to draw is chosen. */
const MANY_LAYERS = 4;

function Modes({ flame, isInOrder, of }: { flame: Flame; isInOrder: boolean; of: number }) {
  const scope = useTableScope();
  const pick = (mode: Mode) =>
    scope.go({
      flame: mode === flame.usual ? "" : mode,
      of: mode === "sandwich" && of >= 0 ? String(of) : "",
      zoom: "",
      chains: "",
    });
  const options = MODES.filter(([mode]) => mode === "layers" ? flame.layers > 1 : isInOrder || mode !== "calls");
  return <Segments label="Flame graph" options={options} value={flame.mode} pick={pick} />;
}

/** The way back from a zoomed box. */
function Crumbs({ flame: { ready, scene }, at, zoom }: {
  flame: Flame;
  at: BoxRef | null;
  zoom: (at: BoxRef | null) => void;
}) {
  const way = at ? wayTo(scene, at) : [];
  const shown = way.length > MOST_CRUMBS ? way.slice(-MOST_CRUMBS) : way;
  return (
    <nav class="crumbs" aria-label="Zoomed to">
      <button type="button" class="link" disabled={!at} onClick={() => zoom(null)}>Fit all</button>
      {shown.length < way.length && <span>›</span>}
      {shown.length < way.length && "…"}
      {shown.map((crumb) => {
        const name = labelOf(scene.parts[crumb.part]!, crumb.box, ready.nameOf);
        return [
          <span key={`${crumb.box} mark`}>›</span>,
          <button
            key={crumb.box}
            type="button"
            class="link"
            aria-current={crumb === way.at(-1) ? "true" : undefined}
            onClick={() => zoom(crumb)}
          >
            {name}
          </button>,
        ];
      })}
    </nav>
  );
}

/** The functions to choose from, by their own time. */
function Functions({ flame, isMatch }: { flame: Flame; isMatch: ((row: number) => boolean) | null }) {
  const scope = useTableScope();
  const { ready, functions, chosen, name } = flame;
  const matching = isMatch ? functions.filter(({ row }) => isMatch(row)) : functions;
  const shown = matching.slice(0, MOST_FUNCTIONS);
  return (
    <div class="functions">
      <p class="quiet">
        {shown.length < matching.length ? `${decimal(shown.length)} of ` : ""}
        {plural(matching.length, "function")} by self time
      </p>
      <select
        size={2}
        aria-label="Functions"
        onChange={({ currentTarget: { value } }) => scope.go({ of: value, zoom: "", chains: "" })}
      >
        {shown.map((one) => (
          <option key={one.name} value={one.row} selected={one.name === name} title={placeOf(ready, one.row)}>
            {quantity(one.self, chosen.kind)} {ready.nameOf(one.row)}
          </option>
        ))}
      </select>
    </div>
  );
}

const numbersIn = (text: string) => new Set(text.split(".").filter(Boolean).map(Number));

/** The roots that start folded, unless that would fold all of them. */
function foldedRoots({ ready, table }: DrawnTable, tree: Tree, column: string | null): number[] {
  const marks = column ? table.data[column] ?? [] : [];
  const roots = Array.from({ length: ready.count }, (_, row) => row).filter((row) => tree.parent[row]! < 0);
  const folded = roots.filter((row) => marks[row] === true);
  return folded.length < roots.length ? folded : [];
}

function useFlame(drawn: DrawnTable, tree: Tree, picture: PictureOf<"tree">): Flame | null {
  const { ready, entry } = drawn;
  const scope = useTableScope();
  const columns = widthColumns(ready, entry);
  const chosen = columns.find(({ name }) => name === scope.get("width")) ?? columns[0];
  const roots = useMemo(() => foldedRoots(drawn, tree, picture.folded), [drawn.table, tree]);
  const isShown = scope.get("folded") === "shown";
  const calls = useMemo(
    () =>
      shownCalls(ready, tree, (chosen?.values ?? []) as (number | null)[], (row) => !isShown && roots.includes(row)),
    [ready, tree, chosen?.values, isShown, roots],
  );
  const layers = useMemo(() => picture.is_in_order ? mostEqualLayers(calls, ready.nameOf) : 0, [calls]);
  const usual = layers >= MANY_LAYERS ? "layers" : "heavy";
  const mode = MODES.map(([mode]) => mode).find((mode) => mode === scope.get("flame")) ?? usual;
  const functions = useMemo(() => (mode === "sandwich" ? functionsOf(calls) : []), [calls, mode]);
  const of = Number(scope.get("of") || -1);
  const name = functions.length ? calls.tree.name[of] ?? functions[0]!.name : -1;
  const chains = scope.get("chains");
  const scene = useMemo(() => {
    const open = numbersIn(chains);
    if (mode === "layers") return layersScene(calls, ready.nameOf, open);
    return name >= 0 ? sandwichScene(calls, name, open) : callScene(calls, mode !== "calls", open);
  }, [calls, mode, name, chains]);
  const word = picture.folded?.replace("is_", "") ?? "";
  return chosen
    ? { ready, columns, chosen, mode, usual, layers, calls, scene, functions, name, folded: { word, roots, isShown } }
    : null;
}

interface Actions {
  zoom: (at: BoxRef | null) => void;
  open: (at: BoxRef) => void;
  focus: (at: BoxRef | null) => void;
  /** Zooms out by one level. */
  back: () => void;
}

const ZOOM_BY_KEY: Record<string, number> = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 };

function onKey(event: KeyboardEvent, view: FlameView, scene: Scene, { zoom, open, focus, back }: Actions) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { key } = event, { focus: at } = view;
  if (key === "Escape") back();
  else if (key === "Enter" && at) zoom(at);
  else if (key === " " && at) open(at);
  else if (key in ZOOM_BY_KEY) view.zoomBy(ZOOM_BY_KEY[key]!);
  else if (key.startsWith("Arrow")) {
    const next = neighbor(scene, at, key);
    focus(next);
    if (next) view.reveal(lineOf(scene, next));
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

const DRAGGED = 3; // pixels

/** What keys and the pointer do. */
function useFlameInput(flame: Flame, view: { current: FlameView | null }, actions: Actions) {
  const drag = useRef({ x: NaN, isMoved: false }).current;
  const { scene } = flame;
  const hover = (at: BoxRef | null) => {
    view.current!.hover = at;
    view.current!.draw();
  };
  return {
    onKeyDown: (event: KeyboardEvent) => onKey(event, view.current!, scene, actions),
    onPointerDown: ({ offsetX: x }: PointerEvent) => Object.assign(drag, { x, isMoved: false }),
    onPointerMove: ({ offsetX: x, offsetY: y, clientX, clientY, buttons }: PointerEvent) => {
      if (buttons === 1 && Math.abs(x - drag.x) > DRAGGED) {
        view.current!.pan(drag.x - x);
        Object.assign(drag, { x, isMoved: true });
      }
      const at = buttons ? null : view.current!.boxAt(x, y);
      if (at) showTip(tipText(flame, at), clientX + 12, clientY + 8);
      else hideTip();
      hover(at);
    },
    onPointerLeave: () => {
      hideTip();
      hover(null);
    },
    onClick: ({ offsetX: x, offsetY: y }: MouseEvent) => {
      const at = drag.isMoved ? null : view.current!.boxAt(x, y);
      if (!at) return;
      actions.focus(at);
      if (scene.parts[at.part]!.boxes.calls[at.box]! > 1) actions.open(at);
      else actions.zoom(at);
    },
  };
}

/** The canvas in its scrolling box; a status names the box that keys went to. */
function Flames({ flame, look, label }: { flame: Flame; look: Look; label: string }) {
  const scope = useTableScope();
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const view = useRef<FlameView | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const latest = useRef<number | null>(null); // keys may come faster than the page is drawn
  const { scene, ready } = flame;
  const zoomed = scope.get("zoom") ? boxOf(scene, Number(scope.get("zoom"))) : null;
  useEffect(() => {
    view.current = new FlameView(canvas.current!, box.current!);
    return view.current.start();
  }, []);
  useEffect(() => {
    const shown = view.current!;
    shown.focus = latest.current === null ? null : boxOf(scene, latest.current);
    shown.hover = null;
    shown.show(scene, look);
  }, [scene, look]);
  useEffect(() => {
    const boxes = zoomed && scene.parts[zoomed.part]!.boxes;
    const from = boxes ? boxes.left[zoomed.box]! : 0;
    view.current!.zoomTo(from, boxes ? from + boxes.width[zoomed.box]! : scene.total);
  }, [scope.get("zoom"), scene.total]);
  useEffect(() => view.current!.reveal(scene.parts.at(-1)?.line ?? 0), [flame.mode, flame.name]);
  const zoom = (at: BoxRef | null) => {
    scope.go({ zoom: at ? String(nodeOf(scene, at)) : "" });
    if (at && scene.parts.length === 1) revealRow(scope, ready.tree!, rowOf(scene, at));
  };
  const open = (at: BoxRef) => {
    const chains = numbersIn(scope.get("chains")), node = nodeOf(scene, at);
    if (!chains.delete(node)) chains.add(node);
    scope.go({ chains: [...chains].join(".") });
  };
  const focus = (at: BoxRef | null) => {
    view.current!.focus = at;
    view.current!.draw();
    setFocused(latest.current = at && nodeOf(scene, at));
  };
  const back = () => zoom(zoomed ? wayTo(scene, zoomed).at(-2) ?? null : null);
  const handlers = useFlameInput(flame, view, { zoom, open, focus, back });
  const named = focused === null ? null : boxOf(scene, focused);
  return (
    <>
      <Crumbs flame={flame} at={zoomed} zoom={zoom} />
      <div class="sandwich">
        {flame.mode === "sandwich" && <Functions flame={flame} isMatch={look.matches} />}
        <div
          ref={box}
          class="flames"
          role="group"
          tabIndex={0}
          aria-label={label}
          style={{ height: `${Math.min(TALLEST, scene.lines) * ROW}px` }}
          {...handlers}
        >
          <div style={{ height: `${scene.lines * ROW}px` }}>
            <canvas ref={canvas} role="img" aria-label={label} />
          </div>
          <p class="hidden" role="status">{named ? tipText(flame, named) : ""}</p>
        </div>
      </div>
    </>
  );
}

/** How much time the rows that match the filter have, each instant once. */
function Hits({ flame: { calls, chosen, ready }, rows }: { flame: Flame; rows: Uint32Array }) {
  const sum = outermost(ready.tree!, rows).reduce((total, row) => total + calls.tree.value[row]!, 0);
  return (
    <span>
      <b>{plural(rows.length, "match").replace(/matchs$/, "matches")}</b>: {quantity(sum, chosen.kind)}{" "}
      ({percent(sum / calls.total)} %)
    </span>
  );
}

function Folded({ flame: { folded: { word, roots, isShown }, calls, chosen } }: { flame: Flame }) {
  const scope = useTableScope();
  if (!roots.length) return null;
  const sum = roots.reduce((total, row) => total + calls.tree.value[row]!, 0);
  return (
    <button type="button" onClick={() => scope.go({ folded: isShown ? "" : "shown", zoom: "" })}>
      {isShown ? "Fold" : "Show"} {plural(roots.length, `${word} thread`)} ({quantity(sum, chosen.kind)})
    </button>
  );
}

/** The rows as boxes in boxes, the outermost on top. */
export function FlameGraph({ tree, picture, ...drawn }: DrawnTable & { tree: Tree; picture: PictureOf<"tree"> }) {
  const { ready, rows: { rows } } = drawn;
  const scope = useTableScope();
  const flame = useFlame(drawn, tree, picture);
  const matches = useMemo(() => (rows.length < ready.count ? new Set(rows) : null), [rows, ready]);
  const look = useMemo((): Look => ({
    labelOf: (part, box) => labelOf(part, box, ready.nameOf),
    colors: FILLS,
    colorOf: colorPicker(ready, picture.color),
    matches: matches && ((row) => matches.has(row)),
  }), [ready, matches]);
  if (!flame) return null;
  const { chosen, calls, mode, name, functions } = flame;
  const of = functions.find((one) => one.name === name);
  const selected = Number(scope.get("row") || -1);
  return (
    <figure class="card flame">
      <figcaption>
        <Modes flame={flame} isInOrder={picture.is_in_order} of={selected} />
        <b>{of ? ready.nameOf(of.row) : chosen.title}</b>
        {of
          ? <span>{quantity(of.total, chosen.kind)} in all, {quantity(of.self, chosen.kind)} itself</span>
          : <span class="quiet">{quantity(calls.total, chosen.kind)} in all</span>}
        {matches && <Hits flame={flame} rows={rows} />}
        <span class="space" />
        <Folded flame={flame} />
        <Widths columns={flame.columns} chosen={chosen} />
        <SavePicture title={`by ${chosen.title}`} />
      </figcaption>
      <Flames
        flame={flame}
        look={look}
        label={`Flame graph by ${chosen.title}${mode === "sandwich" ? ", sandwich" : ""}`}
      />
      <p class="quiet">
        Click zooms or unfolds a chain, Esc goes back, Ctrl and wheel zoom, arrow keys and Enter work too.
      </p>
    </figure>
  );
}
