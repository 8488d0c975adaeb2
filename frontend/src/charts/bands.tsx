import { Fragment, h } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PictureOf, Table } from "../api/types.ts";
import { tableOf, useAnswer } from "../app/answers.ts";
import { parametersOf, zoomTo } from "../app/router.ts";
import { label, quantity } from "../format/numbers.ts";
import { readableName } from "../format/readable_names.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { cutText, textWidth, useWidth } from "../ui/measure.ts";
import { hideTip, showTip } from "../ui/tip.tsx";
import { type Band, highestInParts, type Piece, stackBands } from "./bands_layout.ts";
import { rowAt } from "./curve_lines.ts";
import { clearCanvas, readColors } from "./flame_canvas.ts";
import { useMarks } from "./marks.ts";
import { Legend } from "./stacked_bar.tsx";

const HEIGHT = 420;
const LANE = 16;
const MOST_LANES = 4; // of ranges above the bands
const LEAST_LABEL = [44, 14]; // pixels of a band with its name in it
const LEAST = 0.3; // pixels: narrower pieces show what is behind them
const ZOOM_PER_WHEEL = 0.004;
const SETTLED_MS = 300; // after which a zoom by the wheel asks for more bands

const fill = (color: string, percent: number) => `color-mix(in srgb, var(--${color}) ${percent}%, var(--tile))`;
const FILLS = ["kernel", "memcpy", "communication", "runtime", "cpu-exec", "dataloader"].map((name) => fill(name, 60));
const OTHER = fill("other", 90);
const BEHIND = [fill("other", 22), fill("other", 60)]; // the levels, the highest first

type Drawn = DrawnTable & { picture: PictureOf<"bands"> };

/** Levels behind the bands; a value holds until the next time. */
interface Levels {
  times: number[];
  lines: { name: string; values: number[] }[];
}

/** A range of time above the bands, in one of the lanes. */
interface Range {
  name: string;
  from: number;
  to: number;
  lane: number;
}

interface Scene {
  pieces: Piece[];
  names: string[];
  /** The color of each row, a number of FILLS, or behind the last one. */
  inks: Map<number, number>;
  levels: Levels;
  ranges: Range[];
  /** The pixels that the ranges take. */
  head: number;
  top: number;
  from: number;
  to: number;
}

const rowsOf = (table: Table, series: string, value: unknown) =>
  [...Array(table.data[series]?.length ?? 0).keys()].filter((row) => table.data[series]![row] === value);

/** The names in the order of what they hold over time. */
function namesByArea(bands: Band[], nameOf: (row: number) => string): string[] {
  const areas = new Map<string, number>();
  for (const { row, begin, end, height } of bands) {
    areas.set(nameOf(row), (areas.get(nameOf(row)) ?? 0) + (end - begin) * height);
  }
  return [...areas].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

function rangesOf({ picture: { series, ranges } }: Drawn, table: Table, value: unknown): Range[] {
  const [begin, end, name, lane] = ranges.map((column) => table.data[column]!);
  return rowsOf(table, series, value)
    .map((row) => ({
      name: String(name![row]),
      from: Number(begin![row]),
      to: Number(end![row]),
      lane: Number(lane![row]),
    }))
    .filter(({ lane }) => lane < MOST_LANES);
}

function sceneOf(drawn: Drawn, levels: Table, rangesTable: Table, value: unknown): Scene {
  const { picture, table, rows: { rows } } = drawn, ranges = rangesOf(drawn, rangesTable, value);
  const { begin, end, height, name, series } = picture, shown = new Set(rows);
  const number = (column: string, row: number) => Number(table.data[column]![row]);
  const bands = rowsOf(table, series, value).filter((row) => shown.has(row)).map((row) => ({
    row,
    begin: number(begin, row),
    end: number(end, row),
    height: number(height, row),
  }));
  const nameOf = (row: number) => readableName(String(table.data[name]![row]));
  const names = namesByArea(bands, nameOf), order = new Map(names.map((name, i) => [name, i]));
  const at = rowsOf(levels, series, value);
  const time = levels.columns.find(({ kind }) => kind === "instant")!.name;
  const lines = picture.levels.map((name) => ({
    name: label(name),
    values: at.map((row) => Number(levels.data[name]![row])),
  }));
  const times = at.map((row) => Number(levels.data[time]![row]));
  const ends = times.length ? times : bands.flatMap(({ begin, end }) => [begin, end]);
  return {
    pieces: stackBands(bands),
    names,
    inks: new Map(bands.map(({ row }) => [row, Math.min(order.get(nameOf(row))!, FILLS.length)])),
    levels: { times, lines },
    ranges,
    head: LANE * (Math.max(-1, ...ranges.map(({ lane }) => lane)) + 1),
    top: Math.max(1, ...lines.flatMap(({ values }) => values)),
    from: Math.min(...ends),
    to: Math.max(...ends),
  };
}

interface Frame {
  from: number;
  to: number;
  width: number;
}

const timeAt = ({ from, to, width }: Frame, x: number) => from + ((to - from) * x) / width;

/** A text where there is room for it. */
function write(pen: CanvasRenderingContext2D, ink: string, text: string, left: number, wide: number, middle: number) {
  if (wide < LEAST_LABEL[0]!) return;
  const cut = cutText(text, wide - 8, 12);
  pen.fillStyle = ink;
  if (textWidth(cut, 12) < wide - 6) pen.fillText(cut, left + 4, middle);
}

/** Draws bands, with their names where there is room. */
function paintBands(
  pen: CanvasRenderingContext2D,
  { pieces, head, top }: Scene,
  { from, to, width }: Frame,
  look: { inkOf: (row: number) => string; text: string; names: Names; of?: number },
) {
  const x = (time: number) => ((time - from) / Math.max(1, to - from)) * width;
  const y = (value: number) => head + HEIGHT * (1 - value / top);
  for (const { row, from, to, low, high } of pieces) {
    const left = Math.max(0, x(from)), wide = Math.min(width, x(to)) - left, tall = y(low) - y(high);
    if (wide < LEAST || row !== (look.of ?? row)) continue;
    pen.fillStyle = look.inkOf(row);
    pen.fillRect(left, y(high), wide, tall > 3 ? tall - 1 : tall);
    if (tall >= LEAST_LABEL[1]!) write(pen, look.text, look.names(row), left, wide, y(high) + tall / 2);
  }
}

/** Draws what is in sight. Levels are columns of a pixel: a path of thousands of steep lines takes a tenth of a second. */
function paint(pen: CanvasRenderingContext2D, scene: Scene, frame: Frame, inks: string[], names: Names) {
  const { levels: { times, lines }, ranges, head, top } = scene, { from, to, width } = frame;
  const x = (time: number) => ((time - from) / Math.max(1, to - from)) * width;
  lines.forEach(({ values }, i) => {
    pen.fillStyle = inks[i]!;
    highestInParts(times, values, from, to, Math.round(width)).forEach((value, column) => {
      const tall = (HEIGHT * value) / top;
      pen.fillRect(column, head + HEIGHT - tall, 1, tall);
    });
  });
  paintBands(pen, scene, frame, { inkOf: (row) => inks[2 + scene.inks.get(row)!]!, text: inks.at(-2)!, names });
  for (const { name, from, to, lane } of ranges) {
    const left = Math.max(0, x(from)), wide = Math.min(width, x(to)) - left, above = lane * LANE;
    if (wide < 0) continue;
    pen.fillStyle = inks[0]!;
    pen.fillRect(left, above, Math.max(1, wide - 1), LANE - 1);
    write(pen, inks.at(-2)!, name, left, wide, above + LANE / 2);
  }
}

type Names = (row: number) => string;

/** The part in sight: that of the answer, until the wheel changes it. */
function useFrame(scene: Scene, width: number) {
  const [moved, move] = useState<{ from: number; to: number } | null>(null);
  useLayoutEffect(() => move(null), [scene]);
  useEffect(() => {
    if (!moved) return;
    const timer = setTimeout(() => zoomTo(moved), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [moved]);
  return { frame: { ...(moved ?? scene), width }, move };
}

/** The bands of one device. */
function Chart({ drawn, levels, ranges, value }: { drawn: Drawn; levels: Table; ranges: Table; value: unknown }) {
  const { picture, table, rows } = drawn;
  const box = useRef<HTMLDivElement>(null), canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(box);
  const scene = useMemo(() => sceneOf(drawn, levels, ranges, value), [table, rows.rows, levels, ranges, value]);
  const { frame, move } = useFrame(scene, width);
  const [since, setSince] = useState<number | null>(null), [at, setAt] = useState(0);
  const kindOf = (name: string) => table.columns.find((column) => column.name === name)!.kind;
  const shownOf = (name: string, row: number) => quantity(Number(table.data[name]![row]), kindOf(name));
  const shownOfTime = (time: number) => quantity(time, kindOf(picture.begin));
  const nameOf = (row: number) => readableName(String(table.data[picture.name]![row]));
  const tip = (row: number) =>
    `${nameOf(row)}\n${shownOf(picture.height, row)}\n${shownOf(picture.begin, row)} to ${shownOf(picture.end, row)}`;
  const ordered = useMemo(() => [...scene.inks.keys()], [scene]);
  const marks = useMarks(ordered, `${drawn.entry.title} ${value}`, tip);
  const inks = useRef<string[] | null>(null); // read again when the theme changes
  const unmarked = useRef<HTMLCanvasElement | null>(null); // what a pointer that moves doesn't change
  const drawMarked = () => {
    if (!unmarked.current) return;
    const pen = clearCanvas(canvas.current!, width, HEIGHT + scene.head), [text, ink] = inks.current!.slice(-2);
    pen.drawImage(unmarked.current, 0, 0, width, HEIGHT + scene.head);
    if (marks.row >= 0) paintBands(pen, scene, frame, { inkOf: () => ink!, text: text!, names: nameOf, of: marks.row });
  };
  const draw = () => {
    if (!width) return;
    inks.current ??= readColors(box.current!, [...BEHIND, ...FILLS, OTHER, "var(--text)", "var(--accent)"]);
    unmarked.current ??= document.createElement("canvas");
    paint(clearCanvas(unmarked.current, width, HEIGHT + scene.head), scene, frame, inks.current, nameOf);
    drawMarked();
  };
  useLayoutEffect(draw, [scene, frame.from, frame.to, width]);
  useLayoutEffect(drawMarked, [marks.row]);
  useEffect(() => {
    const themed = new MutationObserver(() => {
      inks.current = null;
      draw();
    });
    themed.observe(document.documentElement, { attributeFilter: ["style"] });
    return () => themed.disconnect();
  });
  const behind = (time: number) => {
    const row = rowAt(scene.levels.times, time);
    return scene.levels.lines.map(({ name, values }) => `${name} ${quantity(values[row], "bytes")}`).join("\n");
  };
  const pieceAt = ({ offsetX, offsetY }: PointerEvent) => {
    const time = timeAt(frame, offsetX), level = scene.top * (1 - (offsetY - scene.head) / HEIGHT);
    return scene.pieces.find(({ from, to, low, high }) => from <= time && time < to && low <= level && level < high);
  };
  const rangeTip = ({ offsetX, offsetY }: PointerEvent) => {
    const time = timeAt(frame, offsetX), above = Math.floor(offsetY / LANE);
    const range = scene.ranges.find(({ from, to, lane }) => lane === above && from <= time && time < to);
    return range ? `${range.name}\n${shownOfTime(range.from)} to ${shownOfTime(range.to)}\n` : "";
  };
  const point = (event: PointerEvent) => {
    const piece = pieceAt(event), time = timeAt(frame, event.offsetX);
    marks.mark(piece ? ordered.indexOf(piece.row) : -1);
    setAt(event.offsetX);
    showTip(`${piece ? `${tip(piece.row)}\n` : rangeTip(event)}${behind(time)}`, event.clientX + 12, event.clientY);
  };
  const release = (event: PointerEvent) => {
    setSince(null);
    if (since === null) return;
    const [begin, end] = [since, event.offsetX].sort((a, b) => a - b) as [number, number];
    if (end - begin > 4) return zoomTo({ from: timeAt(frame, begin), to: timeAt(frame, end) });
    marks.open(pieceAt(event)?.row);
  };
  useEffect(() => {
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const time = timeAt(frame, event.offsetX), factor = Math.exp(event.deltaY * ZOOM_PER_WHEEL);
      move({ from: time - (time - frame.from) * factor, to: time + (frame.to - time) * factor });
    };
    canvas.current!.addEventListener("wheel", wheel, { passive: false });
    return () => canvas.current?.removeEventListener("wheel", wheel);
  }, [frame.from, frame.to, width]);
  const title = `${label(picture.series)} ${value}`;
  const isCut = scene.names.length > FILLS.length;
  const parts = [
    ...scene.names.slice(0, FILLS.length).map((name, i) => ({ name, color: FILLS[i]! })),
    ...(isCut ? [{ name: "other lines", color: OTHER }] : []),
    { name: "smaller blocks", color: BEHIND[1]! },
    { name: "reserved, not active", color: BEHIND[0]! },
  ];
  return (
    <figure class="card plot bands">
      <figcaption>
        <b>{title}</b> <span>up to {quantity(scene.top, kindOf(picture.height))}</span>
        <SavePicture title={title} />
      </figcaption>
      <div ref={box} {...marks.around}>
        <canvas
          ref={canvas}
          height={HEIGHT + scene.head}
          onPointerDown={(event) => event.button || (setSince(event.offsetX), setAt(event.offsetX))}
          onPointerMove={point}
          onPointerUp={release}
          onPointerLeave={() => {
            setSince(null);
            marks.mark(-1);
            hideTip();
          }}
          onDblClick={() => zoomTo(null)}
        />
        {since !== null && <i style={{ left: `${Math.min(since, at)}px`, width: `${Math.abs(at - since)}px` }} />}
      </div>
      <p class="quiet">
        {quantity(frame.from, "instant")} <span>Drag or Ctrl and wheel zoom, a click opens a block</span>{" "}
        {quantity(frame.to, "instant")}
      </p>
      <Legend parts={parts} />
    </figure>
  );
}

/** Rows as bands on top of each other, a picture for each device. */
export function BandsChart(drawn: Drawn) {
  const { picture: { levels_view, ranges_view, series }, entry, table } = drawn;
  const levels = tableOf(useAnswer(levels_view, parametersOf(entry)));
  const ranges = tableOf(useAnswer(ranges_view, parametersOf(entry)));
  const values = [...new Set(table.data[series])];
  return levels && ranges && <>{values.map((value) => <Chart key={value} {...{ drawn, levels, ranges, value }} />)}</>;
}
