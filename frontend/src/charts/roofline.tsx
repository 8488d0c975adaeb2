import { h } from "preact";
import { useRef } from "preact/hooks";
import type { PictureOf, Table } from "../api/types.ts";
import { edge, exact, percent, plural, quantity } from "../format/numbers.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { ValueAxis } from "./value_axis.tsx";
import { cutText, textWidth, useWidth } from "../ui/measure.ts";
import { hideTip, showTip } from "../ui/tip.tsx";
import { useMarks } from "./marks.ts";
import { decades, type Log, logScale, type Mark, marksOf, type Roof, roofsOf, rowsLeftOut } from "./roofline_marks.ts";
import { around, isFree, piecesOf, placeLabels, type Rectangle, type Segment } from "./label_placement.ts";

const HEIGHT = 380;
const EDGE = { left: 84, right: 20, top: 14, bottom: 40 };
const LARGEST = 26; // pixels: radius of the point with the most time
const SMALLEST = 3;
const MOST_LABELS = 6;
const LABEL = 200;
const MOST_NAME = 300; // pixels
const LINE = 15; // pixels of a line of text
const ABOVE = 4; // pixels from a roof up to the foot of its name

interface Plot {
  marks: Mark[];
  x: Log;
  y: Log;
  radius: (mark: Mark) => number;
  /** Where points and roofs are drawn. */
  inside: Rectangle;
}

/** The scales: all points, the ridges, and the roofs above. */
function plotOf(marks: Mark[], width: number): Plot {
  const roofs = marks.flatMap(({ peakRate }) => peakRate ?? []);
  const ridges = marks.flatMap(({ peakRate, peakBandwidth }) =>
    peakRate && peakBandwidth && peakRate / peakBandwidth || []
  );
  const inside = {
    left: EDGE.left,
    top: EDGE.top,
    width: width - EDGE.left - EDGE.right,
    height: HEIGHT - EDGE.top - EDGE.bottom,
  };
  const largest = Math.max(...marks.map(({ time }) => time));
  return {
    marks,
    x: logScale([...marks.map(({ x }) => x), ...ridges], inside.left, inside.left + inside.width),
    y: logScale([...marks.map(({ rate }) => rate), ...roofs], inside.top + inside.height, inside.top),
    radius: ({ time }) => Math.max(SMALLEST, LARGEST * Math.sqrt(time / largest)),
    inside,
  };
}

function Grid({ marks, x, y, inside: { left, top, width, height } }: Plot) {
  const { kind } = marks[0]!, isOfBytes = kind === "byte_rate";
  return (
    <g aria-hidden="true">
      {decades(x).map((value) => (
        <g key={`x ${value}`}>
          <line class="grid" x1={x.at(value)} x2={x.at(value)} y1={top} y2={top + height} />
          <text x={x.at(value)} y={top + height + 16} text-anchor="middle">
            {edge(value, isOfBytes ? "duration" : "number")}
          </text>
        </g>
      ))}
      <ValueAxis
        marks={decades(y)}
        left={left}
        right={left + width}
        y={y.at}
        text={(value) => edge(value, kind)}
      />
      <text x={left + width} y={top + height + 34} text-anchor="end">{isOfBytes ? "time" : "FLOP per byte"}</text>
    </g>
  );
}

/** A roof in pixels, or a share of it: along the memory's bandwidth, then level from the ridge. */
function segments({ x, y }: Plot, { bandwidth, rate }: Roof, share: number): Segment[] {
  const ridge = Math.min(Math.max(rate / bandwidth, x.low), x.high);
  const start = Math.max(x.low, y.low / (bandwidth * share));
  const [low, middle, high] = [start, Math.max(start, ridge), x.high].map((intensity) =>
    [x.at(intensity), y.at(Math.min(rate, intensity * bandwidth) * share)] as const
  ) as [Place, Place, Place];
  return [[...low, ...middle], [...middle, ...high]];
}

type Place = readonly [number, number];

/** All lines of the roofs by their class; the first roof has another one at half of it. */
const roofLines = (plot: Plot): { name: string; segment: Segment }[] =>
  roofsOf(plot.marks).flatMap((roof, i) =>
    ["roof", "roof half"].slice(0, i ? 1 : 2).flatMap((name, at) =>
      segments(plot, roof, 1 / (at + 1)).map((segment) => ({ name, segment }))
    )
  );

interface RoofLabel {
  text: string;
  x: number;
  y: number;
  angle: number;
  /** What it covers. */
  box: Rectangle;
}

/** A name at a line from its free end on: the left one of a slope, the right one of a level line. */
function labelsAlong([x1, y1, x2, y2]: Segment, text: string): RoofLabel[] {
  const angle = y1 - y2 < 1 ? 0 : Math.atan2(y2 - y1, x2 - x1), [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const width = textWidth(text, 12), length = Math.hypot(x2 - x1, y2 - y1), room = length - width;
  /** So far along the line, and so far above it. */
  const at = (along: number, above: number) =>
    [x1 + cos * along + sin * above, y1 + sin * along - cos * above] as const;
  const count = Math.ceil((angle ? room : length) / LINE); // over the slope there is room for the name of a short level
  return Array.from({ length: Math.max(1, count) }, (_, i) => {
    const start = angle ? 8 + i * LINE : room - i * LINE, [x, y] = at(start, ABOVE);
    const [left] = at(start, ABOVE + 12), [right] = at(start + width, ABOVE - 3); // lines go up, if they aren't level
    const [, top] = at(start + width, ABOVE + 12), [, bottom] = at(start, ABOVE - 3);
    const box = { left, top, width: right - left, height: bottom - top };
    return { text, x, y, angle: angle * 180 / Math.PI, box };
  });
}

/** The names of the roofs, where there is room: at the level lines those of formats, at the slope that of the memory. */
function roofLabels(plot: Plot, points: Rectangle[], lines: Rectangle[]): RoofLabel[] {
  const roofs = roofsOf(plot.marks), [first] = roofs, busy = [...points];
  const place = (text: string, segment: Segment) => {
    const label = labelsAlong(segment, text).find(({ angle, box }) =>
      box.top >= 0 && box.left >= plot.inside.left && isFree(box, angle ? busy : [...busy, ...lines])
    );
    if (label) busy.push(label.box);
    return label ?? [];
  };
  const names = roofs.filter(({ rate }) => rate < Infinity).flatMap((roof) =>
    place(`${roof.format} ${quantity(roof.rate, plot.marks[0]!.kind)}`, segments(plot, roof, 1)[1]!)
  );
  const slope = first && segments(plot, first, 1)[0]!;
  return slope && slope[2] - slope[0] > LINE
    ? names.concat(place(`memory ${quantity(first.bandwidth, "byte_rate")}`, slope))
    : names;
}

const Line = ({ name, segment: [x1, y1, x2, y2] }: { name: string; segment: Segment }) => (
  <line class={name} {...{ x1, y1, x2, y2 }} />
);

/** The names of the roofs, and the largest points with their share of the roof, as far as there is room. */
function Labels({ plot, nameOf }: { plot: Plot; nameOf: (row: number) => string }) {
  const { marks, x, y, radius, inside } = plot;
  const byTime = marks.toSorted((a, b) => b.time - a.time), largest = byTime.slice(0, MOST_LABELS);
  const points = byTime.map((mark) => ({ x: x.at(mark.x), y: y.at(mark.rate), radius: radius(mark) }));
  const circles = points.map(around), lines = roofLines(plot).flatMap(({ segment }) => piecesOf(segment));
  const roofs = roofLabels(plot, circles, lines);
  const texts = largest.map(({ row, share, time }) => [
    cutText(nameOf(row), LABEL, 12),
    `${quantity(time, "duration")}${share === null ? "" : `, ${percent(share)} % of the roof`}`,
  ]);
  const sizes = texts.map((lines) => ({
    width: Math.max(...lines.map((line) => textWidth(line, 12))),
    height: LINE * lines.length,
  }));
  const placed = placeLabels(sizes, points, inside, [...circles, ...lines, ...roofs.map(({ box }) => box)]);
  return (
    <g aria-hidden="true">
      {roofs.map(({ text, x, y, angle }) => (
        <text key={text} class="strong" transform={`translate(${x} ${y}) rotate(${angle})`}>{text}</text>
      ))}
      {placed.map((at, i) =>
        at && texts[i]!.map((line, number) => (
          <text
            key={`${i} ${number}`}
            class={number ? "" : "strong"}
            x={at.left}
            y={at.top + LINE * (number + 1) - 4}
          >
            {line}
          </text>
        ))
      )}
    </g>
  );
}

/** What is drawn and what isn't, with its time and the reason of the row with most of it. */
function Coverage({ marks, rows, table: { data }, picture, nameOf }: {
  marks: Mark[];
  rows: Uint32Array;
  table: Table;
  picture: PictureOf<"roofline">;
  nameOf: (row: number) => string;
}) {
  const timeOf = (row: number) => Number(data[picture.time]![row] ?? 0);
  const drawn = new Set(marks.map(({ row }) => row));
  const byTime = [...rows].sort((a, b) => timeOf(b) - timeOf(a));
  const spent = (of: number[]) => quantity(of.reduce((total, row) => total + timeOf(row), 0), "duration");
  const reasonOf = (row: number) => data[picture.reason]![row] ?? "";
  const left = rowsLeftOut(byTime, drawn, timeOf);
  const hasBytes = (row: number) => data[picture.byte_rate]![row] != null;
  const bytes = left.filter(hasBytes), unknown = left.filter((row) => !hasBytes(row)), most = unknown[0];
  return (
    <p class="quiet">
      Area: time. Drawn: {plural(drawn.size, "row")}, {spent([...drawn])} of {spent(byTime)}.{" "}
      {reasonOf(byTime.find((row) => drawn.has(row))!)} {bytes.length > 0 &&
        `Not drawn, since they have no FLOPs: ${plural(bytes.length, "row")}, ${spent(bytes)}.`} {most !== undefined &&
        `Not drawn: ${unknown.length > 1 ? `${plural(unknown.length, "row")}, ${spent(unknown)}, the longest ` : ""}${
          cutText(nameOf(most), MOST_NAME)
        } (${quantity(timeOf(most), "duration")}). ${reasonOf(most)}`}{" "}
      {roofsOf(marks).length > 0 && "Dashed: 50 % of the roof. "}Click a point, or use arrow keys and Enter.
    </p>
  );
}

type Drawn = DrawnTable & { picture: PictureOf<"roofline"> };

/** Rows as points below the roofs of the device; nothing if the work of no row is known. */
export function RooflineChart(drawn: Drawn) {
  const marks = marksOf(drawn.picture, drawn.table, drawn.rows.rows);
  return marks.length ? <Chart {...drawn} marks={marks} /> : null;
}

function Chart({ picture, ready, table, rows: { rows }, marks }: Drawn & { marks: Mark[] }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const plot = plotOf(marks, width), { x, y, radius } = plot;
  const byTime = marks.toSorted((a, b) => b.time - a.time); // large points below small ones
  const across = marks.toSorted((a, b) => a.x - b.x || a.row - b.row);
  const tip = ({ row, kind, x, rate, time, share }: Mark) =>
    [
      ready.nameOf(row),
      `${quantity(time, "duration")} (${exact(time, "duration")})`,
      quantity(rate, kind) + (kind === "byte_rate" ? "" : ` at ${edge(x, "number")} FLOP per byte`),
      share === null ? "" : `${percent(share)} % of the roof`,
    ].filter(Boolean).join("\n");
  const { at, around: marked, open, opened } = useMarks(
    across.map(({ row }) => row),
    `Roofline with ${plural(marks.length, "point")}`,
    (row) => tip(marks.find((mark) => mark.row === row)!),
  );
  return (
    <figure class="card roofline plot">
      <figcaption>
        <b>Roofline</b>
        <SavePicture title="Roofline" />
      </figcaption>
      <div ref={box} {...marked}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            <Grid {...plot} />
            {roofLines(plot).map((line, i) => <Line key={i} {...line} />)}
            {byTime.map((mark) => (
              <circle
                key={mark.row}
                class={mark.row === (across[at]?.row ?? opened) ? "mark selected" : "mark"}
                cx={x.at(mark.x)}
                cy={y.at(mark.rate)}
                r={radius(mark)}
                onPointerMove={({ clientX, clientY }) => showTip(tip(mark), clientX + 12, clientY + 8)}
                onPointerLeave={hideTip}
                onClick={() => open(mark.row)}
              />
            ))}
            <Labels plot={plot} nameOf={ready.nameOf} />
          </svg>
        )}
      </div>
      <Coverage {...{ marks, rows, table, picture }} nameOf={ready.nameOf} />
    </figure>
  );
}
