import { h } from "preact";
import { useRef } from "preact/hooks";
import type { Table } from "../api/types.ts";
import { CATEGORIES } from "./step_categories.ts";
import { decimal, exact, percent, quantity, scaleFor } from "../format/numbers.ts";
import { parseRange, type Range } from "./step_range.ts";
import { stepNoun } from "../format/steps.ts";
import { highestOfEach, ticks } from "./chart_geometry.ts";
import { ValueAxis } from "./value_axis.tsx";
import { address } from "../app/router.ts";
import { textWidth, useWidth } from "../ui/measure.ts";
import { slider } from "../ui/slider.ts";
import { usualStep } from "./usual_step.ts";
import { type Bar, listeners, useStepsInput } from "./steps_input.ts";

const HEIGHT = 190;
const LEFT = 56;
const TOP = 24;
const BASE = HEIGHT - 40;

type Numbers = (number | null)[];

/** One path per category, not one element per part: two thousand steps stay smooth. */
function outlines(bars: Bar[], parts: Numbers[], scaleY: (ns: number) => number): string[] {
  const below = bars.map(() => 0);
  return parts.map((values) =>
    bars.map(({ step, x, width }, i) => {
      const start = below[i]!;
      below[i] = start + (values[step] ?? 0);
      const [y, end] = [scaleY(below[i]!), scaleY(start)];
      return end - y > 0.01 ? `M${x.toFixed(2)} ${y.toFixed(2)}h${width.toFixed(2)}V${end.toFixed(2)}h${-width}Z` : "";
    }).join("")
  );
}

function hatchPath(bars: Bar[], totals: Numbers, scaleY: (ns: number) => number): string {
  return bars.map(({ step, x, width }) => {
    const lines = [];
    for (let y = BASE - 4; y > scaleY(totals[step] ?? 0); y -= 5) lines.push(`M${x.toFixed(1)} ${y}h${width}`);
    return lines.join("");
  }).join("");
}

/** As many step names as there is room for. */
function Names({ bars, names, noun, width }: { bars: Bar[]; names: string[]; noun: string; width: number }) {
  const room = Math.max(...names.slice(-3).map((name) => textWidth(name, 12))) + 14;
  const each = Math.max(1, Math.ceil((room * bars.length) / Math.max(1, width - LEFT)));
  return (
    <g aria-hidden="true">
      {bars.filter((_, i) => i % each === 0).map(({ step, x, width }) => (
        <text key={step} x={x + width / 2} y={BASE + 18} text-anchor="middle">{names[step]}</text>
      ))}
      <text x={(LEFT + width) / 2} y={HEIGHT - 4} text-anchor="middle">
        {noun}
        {bars[0]!.of > 1 && `; each column is the longest of ${bars[0]!.of}`}
      </text>
    </g>
  );
}

function describeStep(data: Table["data"], { step, of }: Bar): string {
  const total = data.total_ns![step] as number;
  const parts = CATEGORIES.filter(({ column }) => data[column]?.[step]).map(({ name, column }) => {
    const value = data[column]![step] as number;
    return `${name}: ${quantity(value, "duration")} · ${percent(value / total)} %`;
  });
  const remark = [
    of > 1 ? `the longest of ${of} ${stepNoun(data.phase)}s` : "",
    data.part?.[step] ?? (data.is_complete![step] ? "" : "incomplete: the recording began or ended within it"),
  ];
  const note = remark.filter(Boolean).join(", ");
  return [
    `${data.phase?.[step] ?? "Step"} ${data.step![step]}${note ? ` (${note})` : ""}: ${quantity(total, "duration")} (${
      exact(total, "duration")
    })`,
    ...parts,
  ].join("\n");
}

/** Bars of equal distance; where there are more steps than room, the longest of each group of neighbors. */
function placeBars(totals: number[], { from, to }: Range, width: number): Bar[] {
  const inside = Math.max(10, width - LEFT);
  const chosen = highestOfEach(totals.slice(from, to), Math.floor(inside / 3));
  const pitch = inside / chosen.length;
  const thick = Math.min(56, pitch * (pitch < 6 ? 0.8 : 0.62));
  return chosen.map(({ step, of }, i) => ({
    step: from + step,
    of,
    width: thick,
    x: LEFT + pitch * i + (pitch - thick) / 2,
  }));
}

const drawnParts = (bars: Bar[], parts: Numbers[], y: (ns: number) => number) =>
  outlines(bars, parts, y).map((d, i) => d && <path key={i} d={d} style={{ fill: CATEGORIES[i]!.color }} />);

interface Drawing {
  data: Table["data"];
  totals: number[];
  bars: Bar[];
  width: number;
  marked: number | null;
  drag: Range | null;
}

/** The columns, the axes, the marked column, and the dragged range. */
function Drawing({ data, totals, bars, width, marked, drag }: Drawing) {
  const scale = scaleFor("duration", bars.map(({ step }) => totals[step]!));
  const highest = Math.max(...bars.map(({ step }) => totals[step]! / scale.divisor));
  const marks = ticks(highest).map((tick) => tick * scale.divisor);
  const decimals = marks.every((mark) => Number.isInteger(mark / scale.divisor)) ? 0 : scale.decimals;
  const y = (ns: number) => BASE - ((BASE - TOP) * ns) / marks.at(-1)!;
  const whole = bars.filter(({ step }) => data.is_complete![step]);
  const cut = bars.filter(({ step }) => !data.is_complete![step]);
  const parts = CATEGORIES.map(({ column }) => (data[column] ?? []) as Numbers);
  const usual = usualStep(data);
  const current = marked === null ? undefined : bars[marked];
  const dragged = drag && drag.from !== drag.to
    ? [drag.from, drag.to].sort((a, b) => a - b).map((at) => bars[at]!)
    : null;
  return (
    <svg class="steps" viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
      <ValueAxis
        marks={marks}
        left={LEFT}
        right={width}
        y={y}
        text={(mark) => decimal(mark / scale.divisor, decimals)}
        unit={scale.unit}
      />
      <g class="pale">{drawnParts(cut, parts, y)}</g>
      <path class="hatch" d={hatchPath(cut, totals, y)} />
      {drawnParts(whole, parts, y)}
      {usual !== null && <line class="usual" x1={LEFT} x2={width} y1={y(usual)} y2={y(usual)} />}
      {current && (
        <rect
          class="mark"
          x={current.x - 2}
          y={y(totals[current.step]!) - 2}
          width={current.width + 4}
          height={BASE - y(totals[current.step]!) + 2}
        />
      )}
      {dragged && (
        <rect
          class="dragged"
          x={dragged[0]!.x - 2}
          y={TOP}
          width={dragged[1]!.x + dragged[1]!.width - dragged[0]!.x + 4}
          height={BASE - TOP}
        />
      )}
      <Names bars={bars} names={data.step!.map(String)} noun={stepNoun(data.phase)} width={width} />
    </svg>
  );
}

/** Each step as a column of its eight parts, which add up to it. Dragging zooms, a double click shows all again. */
export function StepsChart({ data }: { data: Table["data"] }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const totals = (data.total_ns as Numbers).map((total) => total ?? 0);
  const range = parseRange(address.value.steps, totals.length);
  const bars = placeBars(totals, range, width);
  const tipText = (bar: Bar) => describeStep(data, bar);
  const chart = { box, bars, width, tipText, left: LEFT, top: TOP, count: totals.length };
  const input = useStepsInput(chart);
  const { marked, drag } = input;
  const shown = range.to - range.from;
  const all = `${shown === totals.length ? "" : `${shown} of `}${totals.length} ${stepNoun(data.phase)}s`;
  return (
    <div
      ref={box}
      {...slider(
        "Step time breakdown; arrow keys go from step to step, plus and minus zoom, Escape shows all",
        bars.length,
        marked,
        marked === null || !bars[marked] ? all : tipText(bars[marked]!),
      )}
      {...listeners(chart, input)}
    >
      {width > 0 && bars.length > 0 && (
        <Drawing data={data} totals={totals} bars={bars} width={width} marked={marked} drag={drag} />
      )}
      {shown < totals.length && <p class="quiet">{all}. Double click or Escape for all, shift and wheel to scroll.</p>}
    </div>
  );
}
