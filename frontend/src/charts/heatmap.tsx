import { h } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { PictureOf } from "../api/types.ts";
import type { DrawnColumn } from "../table/columns.ts";
import { cell, cutApart, exact, label, percent, scaleFor } from "../format/numbers.ts";
import { colorRange, darkness, LEAST, type Matrix, matrixOf, nameOf } from "./matrix.ts";
import { Legend } from "./stacked_bar.tsx";
import { timePart } from "../format/time_parts.ts";
import { useTableScope } from "../table/table_scope.tsx";
import { cutText, textWidth, useWidth } from "../ui/measure.ts";
import { useMarks } from "./marks.ts";
import { type LineBar, LineBars, lineBars } from "./line_bars.tsx";
import type { DrawnTable } from "../table/rows.ts";
import { Menu } from "../ui/choice.tsx";
import { SavePicture } from "../table/save.tsx";

const HEIGHT = 560;
const TALLEST = 22; // pixels of a line
const MOST = { lines: HEIGHT, columns: 2000 };
const TOP = 8;
const FOOT = 22;
const LABEL = 170;
const COLOR = [217, 96, 59]; // on light and on dark, at any strength
const PALEST = 0.07; // a value that is there differs from none
const DARKEST = 0.75; // so that numbers are readable on it
const WIDEST = 120; // pixels of a cell
const LEAST_ROOM = [34, 14]; // pixels of a number, beside and below others
const GAP = 4; // pixels between numbers

const BARS = 0.5; // of the room next to the names

const colorAt = (strength: number) => `rgb(${COLOR.join(" ")} / ${strength})`;

type Numbers = (number | null)[];

interface Chart {
  matrix: Matrix;
  column: DrawnColumn;
  isFlagged: (row: number) => boolean;
  /** The row's text in a cell. */
  text: (row: number) => string;
  bars: LineBar[];
  parts: string[];
  /** Where the bars and the cells begin, and how wide the cells are together. */
  barsAt: number;
  left: number;
  inner: number;
  width: number;
  lineHeight: number;
}

/** The cells, a pixel each, as the address of a picture. */
function paintCells({ lines, columns, rows }: Matrix, values: Numbers): string {
  const canvas = Object.assign(document.createElement("canvas"), { width: columns.length, height: lines.length });
  const pen = canvas.getContext("2d")!;
  const picture = pen.createImageData(columns.length, lines.length);
  const range = colorRange(values);
  rows.forEach((row, i) => {
    if (row < 0) return;
    const strength = PALEST + (DARKEST - PALEST) * darkness(values[row]!, range);
    picture.data.set([...COLOR, Math.round(255 * strength)], i * 4);
  });
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}

/** Names left of or below the cells, as many as fit. */
function Names({ names, at, room, vertical }: {
  names: string[];
  at: (i: number) => [x: number, y: number];
  room: (name: string) => number;
  vertical: boolean;
}) {
  let free = -Infinity;
  return names.map((name, i) => {
    const [x, y] = at(i);
    const [middle, half] = [vertical ? y : x, room(name) / 2];
    if (middle - half < free) return null;
    free = middle + half;
    return <text key={i} x={x} y={y + 4} text-anchor={vertical ? "end" : "middle"}>{name}</text>;
  });
}

const cutLabel = (name: string) => cutText(name, LABEL - 12, 12);

function Drawing({ chart, marked }: { chart: Chart; marked: number }) {
  const { matrix, column, bars, parts, barsAt, left, inner, width, lineHeight } = chart, { lines, columns } = matrix;
  const address = useMemo(() => paintCells(matrix, column.values as Numbers), [matrix, column]);
  const height = lineHeight * lines.length;
  const names = lines.map(nameOf), labels = names.map((name) => cutApart(name, names, cutLabel));
  const pitch = inner / columns.length, columnNames = columns.map(nameOf);
  const isRoomy = pitch >= LEAST_ROOM[0]! && lineHeight >= LEAST_ROOM[1]!;
  const texts = isRoomy ? Array.from(matrix.rows, (row) => row >= 0 ? chart.text(row) : "") : [];
  const areNumbersDrawn = isRoomy && texts.every((text) => textWidth(text, 12) + GAP <= pitch);
  return (
    <svg viewBox={`0 0 ${width} ${TOP + height + FOOT}`} height={TOP + height + FOOT}>
      <image
        href={address}
        x={left}
        y={TOP}
        width={inner}
        height={height}
        preserveAspectRatio="none"
        image-rendering="pixelated"
        style={{ imageRendering: "pixelated" }}
      />
      <rect class="frame" x={left} y={TOP} width={inner} height={height} />
      <Names
        vertical
        names={labels}
        at={(i) => [barsAt - 8, TOP + lineHeight * (i + 0.5)]}
        room={() => 15}
      />
      <Names
        vertical={false}
        names={columnNames}
        at={(i) => [Math.min(left + pitch * (i + 0.5), width - textWidth(columnNames[i]!, 12) / 2), TOP + height + 12]}
        room={(name) => textWidth(name, 12) + 10}
      />
      <LineBars bars={bars} parts={parts} x={barsAt} y={TOP} width={left - barsAt - 16} lineHeight={lineHeight} />
      {areNumbersDrawn && Array.from(matrix.rows, (row, i) =>
        row >= 0 && (
          <text
            key={i}
            class={`value ${chart.isFlagged(row) ? "flagged" : ""}`}
            x={left + pitch * (i % columns.length + 0.5)}
            y={TOP + lineHeight * (Math.floor(i / columns.length) + 0.5) + 4}
            text-anchor="middle"
          >
            {texts[i]}
          </text>
        ))}
      {marked >= 0 && (
        <rect
          class="marked"
          x={left + pitch * (marked % columns.length)}
          y={TOP + lineHeight * Math.floor(marked / columns.length)}
          width={pitch}
          height={lineHeight}
        />
      )}
    </svg>
  );
}

/** The cell under the pointer; -1 outside the cells. */
function cellAt({ matrix: { lines, columns }, left, inner, lineHeight }: Chart, box: Element, event: MouseEvent) {
  const { left: x, top: y } = box.querySelector("svg")!.getBoundingClientRect();
  const column = Math.floor(((event.clientX - x - left) / inner) * columns.length);
  const line = Math.floor((event.clientY - y - TOP) / lineHeight);
  const isInside = column >= 0 && column < columns.length && line >= 0 && line < lines.length;
  return isInside ? line * columns.length + column : -1;
}

const chosenColumn = (columns: DrawnColumn[], chosen: string, weight: string | null): DrawnColumn | undefined =>
  columns.find(({ name }) => name === chosen) ?? columns.find(({ name }) => name === weight) ?? columns[0];

function Choose({ columns, column }: { columns: DrawnColumn[]; column: DrawnColumn }) {
  const { go, entry } = useTableScope();
  return (
    <Menu
      title="Shown"
      value={column.name}
      options={columns.map(({ name, title }) => [name, title])}
      onPick={(name) => go({ ink: name === entry.weight ? "" : name })}
    />
  );
}

/** The table's rows as cells, the darker the larger; point at one, or go from one to the next by keys. */
export function Heatmap(
  { picture, entry, table, ready, rows: { rows } }: DrawnTable & { picture: PictureOf<"heatmap"> },
) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { get } = useTableScope();
  const { down: line, across, mark: flag } = picture;
  const parts = picture.parts.filter((name) => table.data[name]?.some(Boolean));
  const drawable = ready.columns.filter(({ isNumeric, kind, name }) =>
    isNumeric && kind !== "instant" && name !== line && name !== across
  );
  const column = chosenColumn(drawable, get("ink"), entry.weight);
  const matrix = useMemo(
    () => column && matrixOf(rows, [table.data[line]!, table.data[across]!, column.values], MOST),
    [rows, table, column],
  );
  const { at, mark, open, around } = useMarks(
    matrix?.rows ?? [],
    `${column?.title} by ${line} and ${across}`,
    (row) => `${ready.nameOf(row)}: ${column!.title} ${exact(column!.values[row]!, column!.kind)}`,
    matrix?.columns.length,
  );
  if (!column || !matrix || !matrix.lines.length) return null;
  const lineHeight = Math.max(1, Math.min(TALLEST, Math.floor(HEIGHT / matrix.lines.length)));
  const longest = Math.max(...matrix.lines.map((name) => textWidth(nameOf(name), 12)));
  const barsAt = Math.min(LABEL, longest + 14);
  const left = barsAt + (parts.length ? Math.round((width - barsAt) * BARS) : 0);
  const scale = scaleFor(column.kind, column.values);
  const flagged = flag && table.data[flag];
  const chart = {
    matrix,
    column,
    isFlagged: (row: number) => Boolean(flagged?.[row]),
    text: (row: number) =>
      flagged?.[row] ? label(flag!).replace("Is ", "") : cell(column.values[row], column.kind, scale),
    bars: parts.length ? lineBars(matrix, table.data, parts) : [],
    parts,
    barsAt,
    left,
    inner: Math.min(width - left, WIDEST * matrix.columns.length),
    width,
    lineHeight,
  };
  const { low, high, isWidened } = colorRange(column.values);
  return (
    <figure class="card heat">
      <figcaption>
        <Choose columns={drawable} column={column} />
        {parts.length > 0 && <Legend parts={parts.map(timePart)} />}
        <SavePicture title={column.title} />
      </figcaption>
      <div
        ref={box}
        {...around}
        onPointerMove={(event) => mark(cellAt(chart, event.currentTarget, event))}
        onClick={(event) => open(matrix.rows[cellAt(chart, event.currentTarget, event)])}
      >
        {width > 0 && <Drawing chart={chart} marked={at} />}
      </div>
      <p class="scale">
        <b>{column.title} {scale.unit}</b>
        {cell(low, column.kind, scale)}
        {isWidened && ` (${percent(LEAST)} % of the largest)`}
        <i style={{ background: `linear-gradient(90deg, ${colorAt(PALEST)}, ${colorAt(DARKEST)})` }} />
        {cell(high, column.kind, scale)} <span class="quiet">{column.doc}</span>
      </p>
      <p class="quiet">
        {around["aria-valuetext"]}
      </p>
    </figure>
  );
}
