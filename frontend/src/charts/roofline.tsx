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
import { decades, type Log, logScale, type Mark, marksOf, roofsOf, rowsLeftOut } from "./roofline_marks.ts";
import { around, overlap, placeLabels, type Rectangle, uncovered } from "./label_placement.ts";

const HEIGHT = 380;
const EDGE = { left: 84, right: 20, top: 14, bottom: 40 };
const LARGEST = 26; // pixels: radius of the point with the most time
const SMALLEST = 3;
const MOST_LABELS = 6;
const LABEL = 200;
const MOST_NAME = 300; // pixels
const LINE = 15; // pixels of a line of text
const STARTS = [1.6, 4, 10, 25, 60, 150]; // times the lowest intensity, where the memory's name may begin

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

/** The points of a roof in pixels: along the memory's bandwidth, then level from the ridge. */
function outline({ x, y }: Plot, bandwidth: number, rate: number, share: number): string {
  const ridge = Math.min(Math.max(rate / bandwidth, x.low), x.high);
  const start = Math.max(x.low, y.low / (bandwidth * share));
  const points = [start, Math.max(start, ridge), x.high].map((intensity) => [
    x.at(intensity),
    y.at(Math.min(rate, intensity * bandwidth) * share),
  ]);
  return `M${points.map((point) => point.map((value) => value.toFixed(1)).join(" ")).join("L")}`;
}

interface RoofLabel {
  text: string;
  at: Rectangle;
  angle: number;
}

/** The names of the roofs: those of formats at the right end, that of the memory along its line, where no point lies. */
function roofLabels({ marks, x, y, inside, radius }: Plot): RoofLabel[] {
  const busy: Rectangle[] = [];
  const roofs = roofsOf(marks);
  const labels = roofs.filter(({ rate }) => rate < Infinity).map(({ format, rate }) => {
    const text = `${format} ${quantity(rate, marks[0]!.kind)}`, width = textWidth(text, 12);
    const at = { left: inside.left + inside.width - width, top: y.at(rate) - LINE - 1, width, height: LINE };
    while (busy.some((one) => Math.abs(one.top - at.top) < LINE)) at.top += LINE;
    busy.push(at);
    return { text, at, angle: 0 };
  });
  const bandwidth = roofs[0]?.bandwidth;
  if (!bandwidth || bandwidth === Infinity) return labels;
  const [slopeX, slopeY] = [x.at(10) - x.at(1), y.at(1) - y.at(10)];
  const text = `memory ${quantity(bandwidth, "byte_rate")}`, width = textWidth(text, 12) + 8;
  const angle = -Math.atan2(slopeY, slopeX), low = Math.max(x.low, y.low / bandwidth);
  const tall = Math.abs(Math.sin(angle)) * width + LINE;
  const places = STARTS.map((times) => ({
    left: x.at(low * times) - 8,
    top: y.at(low * times * bandwidth) - 6 - tall,
    width: Math.cos(angle) * width,
    height: tall,
  }));
  const points = marks.map((mark) => around({ x: x.at(mark.x), y: y.at(mark.rate), radius: radius(mark) }));
  const isFree = (at: Rectangle) => at.top > inside.top && !points.some((point) => overlap(point, at));
  const at = places.find(isFree) ?? places[0]!;
  return [...labels, { text, at, angle: (angle * 180) / Math.PI }];
}

function Roofs(plot: Plot) {
  return (
    <g aria-hidden="true">
      {roofsOf(plot.marks).map(({ format, rate, bandwidth }, i) => (
        <g key={`${format} ${rate} ${bandwidth}`}>
          <path class="roof" d={outline(plot, bandwidth, rate, 1)} />
          {i === 0 && <path class="roof half" d={outline(plot, bandwidth, rate, 0.5)} />}
        </g>
      ))}
    </g>
  );
}

/** The places of the first roof's line, which no label covers. */
function roofLine({ marks, x, y, inside: { left, width } }: Plot): Rectangle[] {
  const [roof] = roofsOf(marks);
  if (!roof) return [];
  const step = (Math.log10(x.high) - Math.log10(x.low)) / width;
  return Array.from({ length: Math.ceil(width / LINE) }, (_, i) => {
    const ends = [i, i + 1].map((place) => 10 ** (Math.log10(x.low) + place * LINE * step));
    const [high, low] = ends.map((at) => y.at(Math.min(roof.rate, at * roof.bandwidth))) as [number, number];
    return { left: left + i * LINE, top: low, width: LINE, height: high - low + 1 };
  });
}

/** The names of the roofs, over points, and the largest points with their share of the roof, as far as there is room. */
function Labels({ plot, nameOf }: { plot: Plot; nameOf: (row: number) => string }) {
  const { marks, x, y, radius, inside } = plot, roofs = roofLabels(plot);
  const largest = marks.toSorted((a, b) => b.time - a.time).slice(0, MOST_LABELS);
  const texts = largest.map(({ row, share, time }) => [
    cutText(nameOf(row), LABEL, 12),
    `${quantity(time, "duration")}${share === null ? "" : `, ${percent(share)} % of the roof`}`,
  ]);
  const sizes = texts.map((lines) => ({
    width: Math.max(...lines.map((line) => textWidth(line, 12))),
    height: LINE * lines.length,
  }));
  const pointOf = (mark: Mark) => ({ x: x.at(mark.x), y: y.at(mark.rate), radius: radius(mark) });
  const occupied = [...roofs.map(({ at }) => at), ...roofLine(plot), ...uncovered(marks.map(pointOf))];
  const placed = placeLabels(largest.map(pointOf), sizes, inside, occupied);
  return (
    <g aria-hidden="true">
      {roofs.map(({ text, at, angle }) =>
        angle
          ? (
            <text
              key={text}
              class="strong"
              transform={`translate(${at.left + 8} ${at.top + at.height}) rotate(${angle})`}
            >
              {text}
            </text>
          )
          : <text key={text} class="strong" x={at.left} y={at.top + LINE - 4}>{text}</text>
      )}
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
            <Roofs {...plot} />
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
