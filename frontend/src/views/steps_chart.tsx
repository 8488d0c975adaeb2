import { useRef, useState } from "preact/hooks";
import type { Table } from "../api.ts";
import { CATEGORIES } from "../categories.ts";
import { decimal, exact, percent, quantity, type Scale, scaleFor } from "../format.ts";
import { highestOfEach, ticks } from "../shapes.ts";
import { textWidth, useWidth } from "../widgets/measure.ts";
import { hideTip, showTip } from "../widgets/tip.tsx";

const HEIGHT = 300;
const LEFT = 56;
const TOP = 24;
const BASE = HEIGHT - 40;

interface Bar {
  step: number;
  of: number;
  x: number;
  width: number;
}

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

function hatching(bars: Bar[], totals: Numbers, scaleY: (ns: number) => number): string {
  return bars.map(({ step, x, width }) => {
    const lines = [];
    for (let y = BASE - 4; y > scaleY(totals[step] ?? 0); y -= 5) lines.push(`M${x.toFixed(1)} ${y}h${width}`);
    return lines.join("");
  }).join("");
}

function Axis({ marks, scale, width, y }: { marks: number[]; scale: Scale; width: number; y: (ns: number) => number }) {
  const decimals = marks.every((mark) => Number.isInteger(mark / scale.divisor)) ? 0 : scale.decimals;
  return (
    <g aria-hidden="true">
      {marks.map((mark) => (
        <g key={mark}>
          <line class="grid" x1={LEFT} x2={width} y1={y(mark)} y2={y(mark)} />
          <text x={LEFT - 8} y={y(mark) + 4} text-anchor="end">{decimal(mark / scale.divisor, decimals)}</text>
        </g>
      ))}
      <text x={LEFT - 8} y={12} text-anchor="end">{scale.unit}</text>
    </g>
  );
}

/** As many step names as there is room for. */
function Names({ bars, names, width }: { bars: Bar[]; names: string[]; width: number }) {
  const room = Math.max(...names.slice(-3).map((name) => textWidth(name, 12))) + 14;
  const each = Math.max(1, Math.ceil((room * bars.length) / Math.max(1, width - LEFT)));
  return (
    <g aria-hidden="true">
      {bars.filter((_, i) => i % each === 0).map(({ step, x, width }) => (
        <text key={step} x={x + width / 2} y={BASE + 18} text-anchor="middle">{names[step]}</text>
      ))}
      <text x={(LEFT + width) / 2} y={HEIGHT - 4} text-anchor="middle">
        {bars[0]!.of > 1 ? `step; each column is the longest of ${bars[0]!.of}` : "step"}
      </text>
    </g>
  );
}

function described(data: Table["data"], { step, of }: Bar): string {
  const total = data.total_ns![step] as number;
  const parts = CATEGORIES.filter(({ column }) => data[column]?.[step]).map(({ name, column }) => {
    const value = data[column]![step] as number;
    return `${name}: ${quantity(value, "duration")} · ${percent(value / total)} %`;
  });
  const remark = [
    of > 1 ? `the longest of ${of} steps` : "",
    data.is_complete![step] ? "" : "cut off by the recording",
  ];
  const note = remark.filter(Boolean).join(", ");
  return [
    `Step ${data.step![step]}${note ? ` (${note})` : ""}: ${quantity(total, "duration")} (${exact(total, "duration")})`,
    ...parts,
  ].join("\n");
}

/** Bars of equal distance; where there are more steps than room, the longest of each group of neighbours. */
function placed(totals: number[], width: number): Bar[] {
  const inside = Math.max(10, width - LEFT);
  const chosen = highestOfEach(totals, Math.floor(inside / 3));
  const slot = inside / chosen.length;
  const thick = Math.min(56, slot * (slot < 6 ? 0.8 : 0.62));
  return chosen.map(({ step, of }, i) => ({ step, of, width: thick, x: LEFT + slot * i + (slot - thick) / 2 }));
}

/** Each step as a column of its eight parts, which add up to it. */
export function StepsChart({ data }: { data: Table["data"] }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [marked, mark] = useState<number | null>(null);
  const totals = (data.total_ns as Numbers).map((total) => total ?? 0);
  const names = data.step!.map(String);
  const bars = placed(totals, width);
  const scale = scaleFor("duration", totals);
  const marks = ticks(Math.max(...totals.map((total) => total / scale.divisor))).map((tick) => tick * scale.divisor);
  const y = (ns: number) => BASE - ((BASE - TOP) * ns) / marks.at(-1)!;
  const whole = bars.filter(({ step }) => data.is_complete![step]);
  const cut = bars.filter(({ step }) => !data.is_complete![step]);
  const parts = CATEGORIES.map(({ column }) => (data[column] ?? []) as Numbers);

  const show = (index: number) => {
    const bar = bars[Math.max(0, Math.min(bars.length - 1, index))]!;
    mark(bars.indexOf(bar));
    const frame = box.current!.getBoundingClientRect();
    showTip(described(data, bar), frame.left + bar.x + bar.width + 8, frame.top + TOP);
  };
  const hide = () => {
    mark(null);
    hideTip();
  };
  const move = (event: PointerEvent) => {
    const x = event.clientX - box.current!.getBoundingClientRect().left - LEFT;
    if (x < 0) return hide();
    show(Math.floor((x * bars.length) / Math.max(1, width - LEFT)));
  };
  const key = (event: KeyboardEvent) => {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, Home: -bars.length, End: bars.length };
    const by = moves[event.key];
    if (by === undefined) return;
    event.preventDefault();
    show((marked ?? (by > 0 ? -1 : bars.length)) + by);
  };
  const current = marked === null ? undefined : bars[marked];
  return (
    <div
      ref={box}
      role="slider"
      tabIndex={0}
      aria-label="Step time breakdown; arrow keys go from step to step"
      aria-valuemin={0}
      aria-valuemax={Math.max(0, bars.length - 1)}
      aria-valuenow={marked ?? 0}
      aria-valuetext={current ? described(data, current) : `${names.length} steps`}
      onPointerMove={move}
      onPointerLeave={hide}
      onKeyDown={key}
      onBlur={hide}
    >
      {width > 0 && (
        <svg class="steps" viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
          <Axis marks={marks} scale={scale} width={width} y={y} />
          <g class="pale">{drawnParts(cut, parts, y)}</g>
          <path class="hatch" d={hatching(cut, totals, y)} />
          {drawnParts(whole, parts, y)}
          {current && (
            <rect
              class="mark"
              x={current.x - 2}
              y={y(totals[current.step]!) - 2}
              width={current.width + 4}
              height={BASE - y(totals[current.step]!) + 2}
            />
          )}
          <Names bars={bars} names={names} width={width} />
        </svg>
      )}
    </div>
  );
}

const drawnParts = (bars: Bar[], parts: Numbers[], y: (ns: number) => number) =>
  outlines(bars, parts, y).map((d, i) => d && <path key={i} d={d} style={{ fill: CATEGORIES[i]!.ink }} />);
