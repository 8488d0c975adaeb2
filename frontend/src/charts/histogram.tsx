import { h } from "preact";
import { useRef } from "preact/hooks";
import type { PictureOf } from "../api/types.ts";
import type { DrawnColumn } from "../table/columns.ts";
import { decimal, edge as edgeText, exact, percent, quantity, type Scale, scaleFor } from "../format/numbers.ts";
import { ticks } from "./chart_geometry.ts";
import { useMarks } from "./marks.ts";
import { ValueAxis } from "./value_axis.tsx";
import { textWidth, useWidth } from "../ui/measure.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";

const HEIGHT = 170;
const TOP = 10;
const BASE = HEIGHT - 24;
const APART = 26; // pixels between two names of edges

type Numbers = (number | null)[];

interface Bin {
  row: number;
  from: number;
  to: number;
}

/** The bins in order of their edges, with null where one is missing between two. */
function binsOf(rows: Uint32Array, lower: Numbers, upper: Numbers): (Bin | null)[] {
  const complete = Array.from(rows).filter((row) => lower[row] !== null && upper[row] !== null);
  const bins = complete.map((row) => ({ row, from: lower[row]!, to: upper[row]! })).sort((a, b) => a.from - b.from);
  return bins.flatMap((bin, i) => i && bins[i - 1]!.to < bin.from ? [null, bin] : [bin]);
}

interface PanelProps {
  bins: (Bin | null)[];
  edge: DrawnColumn;
  column: DrawnColumn;
}

interface BarsProps extends PanelProps {
  tip: (bin: Bin) => string;
  /** The row that is pointed at. */
  marked: number;
  open: (row: number) => void;
  heights: number[];
  scale: Scale;
  width: number;
}

const sumOf = (heights: number[]) => heights.reduce((sum, height) => sum + height, 0);

/** The names of the edges, as many as there is room for. */
function Edges({ bins, edge, left, pitch }: { bins: (Bin | null)[]; edge: DrawnColumn; left: number; pitch: number }) {
  const labels = bins.flatMap((bin, i) => {
    if (!bin) return [];
    const isLast = i === bins.length - 1 || bins[i + 1] === null;
    return [{ at: i, value: bin.from }, ...(isLast ? [{ at: i + 1, value: bin.to }] : [])];
  });
  let free = -Infinity;
  return labels.map(({ at, value }) => {
    const text = edgeText(value, edge.kind);
    const [x, half] = [left + pitch * at, textWidth(text, 12) / 2];
    if (x - half < free) return null;
    free = x + half + APART;
    return <text key={at} x={x} y={BASE + 16} text-anchor="middle">{text}</text>;
  });
}

/** The drawing, so many pixels wide. */
function Bars({ bins, edge, column, heights, scale, width, tip, marked, open }: BarsProps) {
  const marks = ticks(Math.max(...heights) / scale.divisor, 3, column.kind === "count");
  const decimals = marks.every(Number.isInteger) ? 0 : scale.decimals;
  const text = (mark: number) => decimal(mark, decimals);
  const left = Math.max(...marks.map((mark) => textWidth(text(mark), 12))) + 14;
  const pitch = (width - left - 32) / Math.max(1, bins.length);
  const y = (mark: number) => BASE - ((BASE - TOP) * mark) / marks.at(-1)!;
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
      <ValueAxis marks={marks} y={y} text={text} left={left} right={width} />
      {bins.map((bin, i) =>
        bin && (
          <g
            key={bin.row}
            class={bin.row === marked ? "bin marked" : "bin"}
            data-tip={tip(bin)}
            onClick={() => open(bin.row)}
          >
            <rect class="hit-area" x={left + pitch * i} y={TOP} width={pitch} height={BASE - TOP} />
            <rect
              class="height"
              x={left + pitch * i + 0.5}
              y={y(heights[i]! / scale.divisor)}
              width={Math.max(1, pitch - 1)}
              height={BASE - y(heights[i]! / scale.divisor)}
            />
          </g>
        )
      )}
      <Edges bins={bins} edge={edge} left={left} pitch={pitch} />
    </svg>
  );
}

function Panel({ bins, edge, column }: PanelProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const heights = bins.map((bin) => (bin ? Number(column.values[bin.row] ?? 0) : 0));
  const scale = scaleFor(column.kind, heights), total = sumOf(heights);
  const tip = ({ row, from, to }: Bin) =>
    `${edgeText(from, edge.kind)} to ${edgeText(to, edge.kind)}\n${column.title}: ${
      exact(column.values[row], column.kind)
    }` +
    (total > 0 ? ` · ${percent(Number(column.values[row] ?? 0) / total)} %` : "");
  const marks = useMarks(
    bins.flatMap((bin) => bin ? [bin.row] : []),
    `Histogram of ${column.title}`,
    (row) => tip(bins.find((bin) => bin?.row === row)!),
  );
  return (
    <figure class="card histogram">
      <figcaption>
        {column.title} <span>{scale.unit && `${scale.unit} · `}{quantity(total, column.kind)} in all</span>
        <SavePicture title={column.title} />
      </figcaption>
      <div ref={box} {...marks.around}>
        {width > 0 && (
          <Bars {...{ bins, edge, column, heights, scale, width, tip }} marked={marks.row} open={marks.open} />
        )}
      </div>
    </figure>
  );
}

/** A histogram for each charted column, over the bins of the rows that the filter lets through. */
export function Histogram({ picture, ready, rows: { rows } }: DrawnTable & { picture: PictureOf<"histogram"> }) {
  const column = (name: string) => ready.columns.find((column) => column.name === name);
  const [lower, upper] = [picture.lower, picture.upper].map(column);
  if (!lower || !upper) return null;
  const bins = binsOf(rows, lower.values as Numbers, upper.values as Numbers);
  const charted = picture.heights.flatMap((name) => column(name) ?? []);
  if (!bins.length) return null;
  return (
    <div class="charts" role="group" aria-label="Histograms">
      {charted.map((column) => <Panel key={column.name} bins={bins} edge={lower} column={column} />)}
    </div>
  );
}
