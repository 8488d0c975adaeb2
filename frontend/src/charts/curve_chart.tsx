import type { PictureOf, Table } from "../api/types.ts";
import { Fragment, h, type RefObject } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { zoomTo } from "../app/router.ts";
import {
  decimalsOf,
  describeMoment,
  extremes,
  type Line,
  marksAround,
  marksWithin,
  meanOver,
  type Panel,
  panels,
  partMeans,
  rowAt,
  span,
} from "./curve_lines.ts";
import { Frame, Opened, Points } from "./curve_marks.tsx";
import { decimal, percent, quantity, type Scale, scaleFor } from "../format/numbers.ts";
import { prepareTable } from "../table/columns.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { ValueAxis } from "./value_axis.tsx";
import { textWidth, useWidth } from "../ui/measure.ts";
import { slider } from "../ui/slider.ts";
import { hideTip, showTip } from "../ui/tip.tsx";

const TOP = 20;
const FOOT = 20;
const LINES = 6; // colors
const NEARLY_ALL = 0.995; // of the time
const NEAR = 6; // pixels within which the pointer snaps to a mark

interface Axis {
  scale: Scale;
  marks: number[];
  decimals: number;
}

/** Round numbers in the unit that is shown. */
function axis(low: number, high: number, kind: Panel["kind"], count: number): Axis {
  const scale = scaleFor(kind, [low, high]);
  const marks = marksAround(low / scale.divisor, high / scale.divisor, count, kind === "count");
  return { scale, marks: marks.map((mark) => mark * scale.divisor), decimals: decimalsOf(marks) };
}

const formatValue = (value: number, { scale, decimals }: Axis) => decimal(value / scale.divisor, decimals);

/** The margins left and right of the lines in pixels, the same for all panels so that their times line up. */
function margins(drawn: Panel[], axes: Axis[]): { left: number; right: number } {
  const marks = axes.flatMap((values) => values.marks.map((mark) => formatValue(mark, values)));
  const names = drawn.flatMap(({ lines }) => lines.map(({ title }) => title));
  const widest = (texts: string[]) => Math.ceil(Math.max(...texts.map((text) => textWidth(text, 12))));
  return { left: widest(marks) + 14, right: widest(names) + 10 };
}

interface Size {
  width: number;
  height: number;
  margin: { left: number; right: number };
}

function frameOf(values: Axis, [from, to]: [number, number], { width, height, margin }: Size): Frame {
  const { left } = margin;
  const right = Math.max(left + 40, width - margin.right);
  const [low, high] = [values.marks[0]!, values.marks.at(-1)!];
  const base = height - FOOT;
  return {
    left,
    right,
    top: TOP,
    base,
    from,
    to,
    x: (time) => left + ((right - left) * (time - from)) / Math.max(1, to - from),
    y: (value) => base - ((base - TOP) * (value - low)) / (high - low),
    time: (x) => Math.round(from + ((to - from) * (Math.max(left, Math.min(right, x)) - left)) / (right - left)),
  };
}

/** The outline of a line, and of the area below it down to zero; where nothing is known there is neither. */
function outline(
  { times }: Pick<Panel, "times">,
  values: (number | null)[],
  { x, y }: Frame,
): { line: string; area: string } {
  let [line, area, open] = ["", "", false];
  const close = (row: number) => {
    if (open) area += `H${x(times[row]!).toFixed(2)}V${y(0).toFixed(2)}Z`;
    open = false;
  };
  for (const [row, value] of values.entries()) {
    const at = x(times[row]!).toFixed(2);
    if (open) line += `H${at}`;
    if (value === null) {
      close(row);
      continue;
    }
    const level = y(value).toFixed(2);
    line += open ? `V${level}` : `M${at} ${level}`;
    area += open ? `H${at}V${level}` : `M${at} ${y(0).toFixed(2)}V${level}`;
    open = true;
  }
  close(values.length - 1);
  return { line, area };
}

const exactOutline = (panel: Panel, { drawn }: Line, frame: Frame) => outline(panel, drawn, frame);

const PART = 2; // pixels of a part of a line that has more rows than there is room for

const isDense = ({ lines, times }: Panel, { left, right }: Frame) =>
  lines.some(({ means }) => means) && PART * times.length > right - left;

/** The mean of each part of a line, and the area below the exact one. */
function denseOutline(panel: Panel, line: Line, frame: Frame): { line: string; area: string } {
  const [begin, end] = [panel.times[0]!, panel.times.at(-1)!].map(frame.x) as [number, number];
  const means = partMeans(panel, line, Math.max(1, Math.round((end - begin) / PART)));
  return { ...exactOutline(panel, line, frame), line: outline(means, means.values, frame).line };
}

function Grid({ frame, values }: { frame: Frame; values: Axis }) {
  const { left, right, base, from, to, x, y } = frame;
  const { unit, divisor } = scaleFor("instant", [to]);
  const marks = marksWithin(from / divisor, to / divisor, Math.max(2, Math.floor((right - left) / 110)));
  const decimals = decimalsOf(marks);
  return (
    <g aria-hidden="true">
      <ValueAxis
        marks={values.marks}
        left={left}
        right={right}
        y={y}
        text={(mark) => formatValue(mark, values)}
        unit={values.scale.unit}
      />
      {marks.map((mark) => (
        <g key={mark}>
          <line class="grid" x1={x(mark * divisor)} x2={x(mark * divisor)} y1={base} y2={base + 4} />
          <text x={x(mark * divisor)} y={base + 16} text-anchor="middle">{decimal(mark, decimals)}</text>
        </g>
      ))}
      <text x={right + 20} y={base + 16}>{unit}</text>
    </g>
  );
}

/** The lines' names where they end, moved apart from each other. */
function Names({ panel, frame }: { panel: Panel; frame: Frame }) {
  const ends = panel.lines.map(({ title, drawn, ink }) => {
    const last = drawn.findLast((value) => value !== null)!;
    return { title, ink, y: frame.y(last) + 4 };
  }).sort((a, b) => a.y - b.y);
  for (let i = 1; i < ends.length; i++) ends[i]!.y = Math.max(ends[i]!.y, ends[i - 1]!.y + 14);
  for (let i = ends.length - 1, most = frame.base; i >= 0; i--, most -= 14) ends[i]!.y = Math.min(ends[i]!.y, most);
  return (
    <g aria-hidden="true">
      {ends.map(({ title, ink, y }) => (
        <text key={title} class={`name line${ink % LINES}`} x={frame.right + 6} y={y}>{title}</text>
      ))}
    </g>
  );
}

/** Marked rows, such as the peak, with their labels where there is room. */
function Marks({ panel, frame }: { panel: Panel; frame: Frame }) {
  let free = -Infinity;
  const [{ values: first }, ...others] = panel.lines as [Line, ...Line[]];
  return (
    <g aria-hidden="true">
      {panel.marks.map((mark, row) => {
        const value = first[row];
        if (!mark || value === null || value === undefined) return null;
        const [x, y, text] = [frame.x(panel.times[row]!), frame.y(value), `${mark} ${quantity(value, panel.kind)}`];
        const room = textWidth(text, 12) + 12;
        const isLeft = x + room > frame.right;
        const start = isLeft ? x - room : x;
        const hasRoom = start > free;
        if (hasRoom) free = start + room;
        // Above a line that would strike it through.
        const above = others.map(({ drawn }) => frame.y(drawn[row] ?? NaN)).find((line) => line < y && line > y - 20);
        return (
          <g key={row} class="point">
            <circle cx={x} cy={y} r="3.5" />
            {hasRoom && (
              <text
                x={isLeft ? x - 7 : x + 7}
                y={Math.max(12, (above ?? y - 2) - 4)}
                text-anchor={isLeft ? "end" : "start"}
              >
                {text}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

/** The time under the pointer, and where a drag started. */
interface PointedMoment {
  time: number;
  since: number | null;
}

function Lines({ panel, frame }: { panel: Panel; frame: Frame }) {
  const outlines = useMemo(
    () => panel.lines.map((line) => (isDense(panel, frame) ? denseOutline : exactOutline)(panel, line, frame)),
    [panel, frame.left, frame.right, frame.base],
  );
  if (panel.isStacked) { // each area covers those of the lines above it
    return outlines.map(({ area }, i) => <path key={i} class={`area stacked line${panel.lines[i]!.ink}`} d={area} />);
  }
  return (
    <>
      {outlines.map(({ area }, i) => i === 0 && <path key={i} class={`area line${i}`} d={area} />)}
      {outlines.map(({ line }, i) => <path key={i} class={`line line${i % LINES}`} d={line} />)}
      <Points panel={panel} frame={frame} />
    </>
  );
}

/** What the arrow keys lead to: every row, from one to the next. */
function useMoves(panel: Panel, pointed: PointedMoment | null, show: (time: number) => void, canZoom: boolean) {
  const { times } = panel;
  const [from, to] = [times[0]!, times.at(-1)!];
  const row = pointed ? rowAt(times, pointed.time) : -1;
  const zoom = (factor: number) => {
    const middle = pointed?.time ?? (from + to) / 2;
    const half = Math.max(1, ((to - from) * factor) / 2);
    zoomTo({ from: Math.max(0, middle - half), to: middle + half });
  };
  const leap = Math.ceil(times.length / 20);
  const moves: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    PageUp: leap,
    PageDown: -leap,
    Home: -Infinity,
    End: Infinity,
  };
  return (event: KeyboardEvent) => {
    const by = moves[event.key];
    if (by !== undefined) show(times[Math.max(0, Math.min(times.length - 1, row + by))]!);
    else if (canZoom && (event.key === "+" || event.key === "=")) zoom(0.5);
    else if (canZoom && event.key === "-") zoom(2);
    else if (canZoom && (event.key === "0" || event.key === "Escape")) zoomTo(null);
    else return;
    event.preventDefault();
  };
}

/** The time of the nearest mark within reach, else the time itself. */
function snapToMark({ times, marks }: Panel, { x }: Frame, time: number): number {
  const nearby = times.filter((_, row) => marks[row]).filter((at) => Math.abs(x(at) - x(time)) <= NEAR);
  return nearby.length ? nearby.reduce((a, b) => (Math.abs(b - time) < Math.abs(a - time) ? b : a)) : time;
}

interface Shared {
  pointed: PointedMoment | null;
  setPointed: (pointed: PointedMoment | null) => void;
  canZoom: boolean;
}

interface Plotted {
  panel: Panel;
  frame: Frame;
  shared: Shared;
}

/** The text for a time in the panel, and the pointer handlers that show it and select a time range. */
function usePointer(
  { panel, frame, shared: { pointed, setPointed, canZoom } }: Plotted,
  box: RefObject<HTMLDivElement | null>,
) {
  const since = pointed?.since ?? null;
  const pixel = (frame.to - frame.from) / (frame.right - frame.left);
  const text = (time: number) => describeMoment(panel, time, time - pixel / 2, time + pixel / 2);
  const show = (time: number, since: number | null = null) => {
    setPointed({ time, since });
    const { left, top } = box.current!.getBoundingClientRect();
    showTip(text(time), left + frame.x(time) + 12, top + frame.top);
  };
  const hide = () => {
    setPointed(null);
    hideTip();
  };
  const timeOf = (event: PointerEvent) => frame.time(event.clientX - box.current!.getBoundingClientRect().left);
  const onPointerDown = (event: PointerEvent) => {
    if (!canZoom || event.button !== 0) return;
    box.current!.setPointerCapture(event.pointerId);
    show(timeOf(event), timeOf(event));
  };
  const onPointerUp = () => {
    if (!pointed || since === null) return;
    const [begin, end] = [Math.min(since, pointed.time), Math.max(since, pointed.time)];
    if (frame.x(end) - frame.x(begin) <= 4) return show(pointed.time); // a click
    hide();
    zoomTo({ from: begin, to: end });
  };
  const onPointerMove = (event: PointerEvent) =>
    show(since === null ? snapToMark(panel, frame, timeOf(event)) : timeOf(event), since);
  const handlers = {
    onPointerDown,
    onPointerMove,
    onPointerUp,
    onPointerLeave: () => since === null && hide(),
    onPointerCancel: hide,
    onDblClick: () => canZoom && zoomTo(null),
    onBlur: hide,
  };
  return { text, show, handlers };
}

function Plot(
  { panel, frame, values, shared, size: { width, height }, title }: Plotted & {
    values: Axis;
    size: Size;
    title: string;
  },
) {
  const box = useRef<HTMLDivElement>(null);
  const { pointed, canZoom } = shared;
  const { text, show, handlers } = usePointer({ panel, frame, shared }, box);
  const onKeyDown = useMoves(panel, pointed, show, canZoom);
  const keys = canZoom ? "arrow keys go from row to row, + and − zoom, 0 shows the whole" : "arrow keys go on";
  return (
    <div
      ref={box}
      class="plot"
      {...slider(
        `${[title, panel.title].filter(Boolean).join(": ")} over time; ${keys}`,
        panel.times.length,
        pointed && rowAt(panel.times, pointed.time),
        pointed ? text(pointed.time) : `${panel.times.length} rows`,
      )}
      onKeyDown={onKeyDown}
      {...handlers}
    >
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
        <Grid frame={frame} values={values} />
        <Lines panel={panel} frame={frame} />
        <Names panel={panel} frame={frame} />
        <Marks panel={panel} frame={frame} />
        <Opened panel={panel} frame={frame} />
        {pointed && <Pointed panel={panel} frame={frame} pointed={pointed} />}
      </svg>
    </div>
  );
}

function Pointed({ panel, frame, pointed: { time, since } }: { panel: Panel; frame: Frame; pointed: PointedMoment }) {
  const row = rowAt(panel.times, time);
  const x = frame.x(time);
  return (
    <g>
      {since !== null && (
        <rect
          class="dragged"
          x={Math.min(x, frame.x(since))}
          y={frame.top}
          width={Math.abs(x - frame.x(since))}
          height={frame.base - frame.top}
        />
      )}
      <line class="pointed" x1={x} x2={x} y1={frame.top} y2={frame.base} />
      {row >= 0 && panel.lines.map(({ name, drawn, ink }) =>
        drawn[row] !== null && (
          <circle key={name} class={`dot line${ink % LINES}`} cx={x} cy={frame.y(drawn[row]!)} r="3" />
        )
      )}
    </g>
  );
}

const heightOf = (count: number) => (count === 1 ? 240 : count === 2 ? 190 : 140);

interface CurvesProps extends Omit<DrawnTable, "rows"> {
  picture: PictureOf<"lines">;
  /** Another table whose values the axes reach too, so that the curves of both can be compared. */
  scaledWith?: Table | null;
}

/** A table of levels over time as step curves, one panel for each series. Drag zooms, double click shows the whole. */
export function Curves({ picture, table, ready, entry, scaledWith }: CurvesProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box) - 24;
  const [pointed, setPointed] = useState<PointedMoment | null>(null);
  const drawn = useMemo(() => panels(table, ready, picture), [table, ready, picture]);
  const canZoom = entry.parameters.some(({ name }) => name === "from_ns");
  const height = heightOf(drawn.length);
  const ends: [number, number] = [
    Math.min(...drawn.map(({ times }) => times[0]!)),
    Math.max(...drawn.map(({ times }) => times.at(-1)!)),
  ];
  const others = useMemo(() => scaledWith ? panels(scaledWith, prepareTable(scaledWith, entry), picture) : [], [
    scaledWith,
  ]);
  const axes = drawn.map(({ key, lines, kind }) => {
    const other = others.find((one) => one.key === key)?.lines ?? [];
    return axis(...span([...lines, ...other], kind), kind, height > 200 ? 4 : 3);
  });
  const size = { width, height, margin: margins(drawn, axes) };
  return (
    <div ref={box} class="curves">
      {width > 0 && drawn.map((panel, i) => (
        <figure key={panel.key} class="card">
          <Head panel={panel} canZoom={canZoom} />
          <Plot
            panel={panel}
            frame={frameOf(axes[i]!, ends, size)}
            values={axes[i]!}
            size={size}
            title={entry.title}
            shared={{ pointed, setPointed, canZoom }}
          />
        </figure>
      ))}
    </div>
  );
}

/** The panel's title and the exact range of its values. */
function Head({ panel, canZoom }: { panel: Panel; canZoom: boolean }) {
  const [from, to] = [panel.times[0]!, panel.times.at(-1)!];
  return (
    <figcaption>
      {panel.title && <b>{panel.title}</b>} {panel.lines.map((line) => {
        const range = extremes(panel, line, from, to);
        const mean = line.means || panel.kind === "fraction" ? meanOver(panel, line, from, to) : null;
        return range && (
          <span key={line.name}>
            {line.title} {[...new Set(range.map((value) => quantity(value, panel.kind)))].join(" to ")}
            {mean && range[1] > range[0] && `, mean ${quantity(mean[0], panel.kind)}`}
            {mean && mean[1] < NEARLY_ALL && ` over the ${percent(mean[1])} % of the time that is in the recording`}
          </span>
        );
      })}
      {panel.notes.map(({ text, doc }) => <span key={text} class="note" data-tip={doc}>{text}</span>)}
      {canZoom && <span class="hint">Drag to zoom, double-click to reset</span>}
      <SavePicture title={panel.title || panel.lines.map(({ title }) => title).join(", ")} />
    </figcaption>
  );
}
