import { h } from "preact";
import { useRef, useState } from "preact/hooks";
import { isReport } from "../../api/report.ts";
import type { Table } from "../../api/types.ts";
import { useAnswer } from "../../app/answers.ts";
import { openTimeline, zoom, zoomTo } from "../../app/router.ts";
import { ticks } from "../../charts/chart_geometry.ts";
import { Legend } from "../../charts/stacked_bar.tsx";
import { median } from "../../charts/usual_step.ts";
import { decimal, percent, quantity, scaled, scaleFor } from "../../format/numbers.ts";
import { capitalized, stepNoun } from "../../format/steps.ts";
import { textWidth, useWidth } from "../../ui/measure.ts";
import { slider } from "../../ui/slider.ts";
import { AnswerView } from "../../ui/status.tsx";
import { hideTip, showTip } from "../../ui/tip.tsx";
import {
  busyShare,
  columnAt,
  dominant,
  edgesOf,
  fitting,
  type Kind,
  KINDS,
  outlines,
  spanOf,
  type Strip,
  stripsOf,
  type WideGap,
  wideGaps,
} from "./strip_geometry.ts";

const MOST_DEVICES = 8;
const HOST_HEIGHT = 9;
const NAMED_PX = 40; // a gap this wide is labeled with its length
const CAUSE_PX = 90; // and one this wide with its cause
const OUTLIER = 1.25; // times the median step

const isPale = ({ isIdle, isHidden }: Kind) => isIdle && !isHidden;
const kindName = (kind: Kind) => isPale(kind) ? `idle: ${kind.name}` : kind.name;

/** The height of each device's strip. */
const heightOf = (devices: number) => devices <= 1 ? 44 : devices <= 3 ? 28 : 14;

const LEAST_NAMED = 0.05; // of a column: what is lower in all of them can't be seen, and has no entry in the legend

function KindLegend({ strips }: { strips: Strip[] }) {
  const named = new Set(
    strips.flatMap(({ kinds, lengths }) =>
      kinds.filter(({ values }) => values.some((value, i) => value > LEAST_NAMED * lengths[i]!)).map(({ kind }) => kind)
    ),
  );
  const shown = KINDS.filter((kind) => named.has(kind)), idle = shown.find(isPale); // what follows it is, or may be
  return (
    <Legend
      parts={shown.map((kind) => ({
        name: kind === idle ? kindName(kind) : kind.name,
        color: kind.color,
        look: isPale(kind) ? "idle" : "",
      }))}
    />
  );
}

/** The length of a gap, and its cause where one has most of it and there is room. */
function GapLabel({ gap: { x, width, length, cause, color }, height }: { gap: WideGap; height: number }) {
  const hasCause = cause && width >= CAUSE_PX && height >= 40 && textWidth(cause, 11) < width - 8;
  return (
    <g>
      <rect x={x} y={height - 3} width={width} height={3} style={{ fill: color }} />
      {height >= 28 && textWidth(quantity(length, "duration"), 11) < width - 8 && (
        <text x={x + width / 2} y={hasCause ? height / 2 - 4 : height / 2 + 3} text-anchor="middle">
          {quantity(length, "duration")}
          {hasCause && <tspan x={x + width / 2} dy="14">{cause}</tspan>}
        </text>
      )}
    </g>
  );
}

function Row({ strip, width, height, y }: { strip: Strip; width: number; height: number; y: number }) {
  const edges = edgesOf(strip, width);
  const gaps = wideGaps(strip, edges, NAMED_PX);
  const drawn = height === HOST_HEIGHT ? dominant(strip) : strip;
  return (
    <g transform={`translate(0 ${y})`}>
      {outlines(drawn, edges, height).map((d, i) => {
        const { kind } = strip.kinds[i]!;
        return <path key={kind.name} d={d} class={isPale(kind) ? "idle" : ""} style={{ fill: kind.color }} />;
      })}
      {gaps.map((gap) => <GapLabel key={gap.x} gap={gap} height={height} />)}
    </g>
  );
}

interface Step {
  /** Such as "step 5". */
  words: string;
  name: string;
  from: number;
  length: number;
}

function stepsIn({ data }: Table, from: number, to: number): Step[] {
  return data.step!.map((name, i) => ({
    words: `${stepNoun(data.phase)} ${name}`,
    name: String(name),
    from: data.start_ns![i] as number,
    length: data.total_ns![i] as number,
  })).filter((step) => step.name !== "all" && step.from < to && step.from + step.length > from);
}

/** Opens the timeline at a time. */
const openAt = (from: number, length: number, isGap = false) =>
  openTimeline({ find: null, range: { from, to: from + length }, ...(isGap && { gaps: "" }) });

/** The steps' names at their beginnings; as many as fit, slow ones first. */
function StepMarks({ steps, from, to, width }: { steps: Step[]; from: number; to: number; width: number }) {
  const scale = scaleFor("duration", steps.map(({ length }) => length));
  const usual = median(steps.map(({ length }) => length));
  const isSlow = ({ length }: Step) => length > OUTLIER * usual;
  const whole = Math.max(0, steps.findIndex(isSlow)); // its label has the words and the unit
  const placed = steps.map((step, i) => {
    const text = i === whole
      ? `${step.words} · ${quantity(step.length, "duration")}`
      : `${step.name} · ${scaled(step.length, scale)}`;
    const x = Math.max(0, ((step.from - from) / (to - from)) * width);
    return { step, text, x, width: textWidth(text, 12, 600) + 8, isOutlier: isSlow(step) };
  });
  const fits = fitting(placed, width);
  return (
    <div class="marks">
      {placed.map(({ step, text, x, isOutlier }, i) => (
        <span key={step.name} class={fits[i] ? "" : "tick"} style={{ left: `${x}px` }}>
          {fits[i] && (
            <button
              type="button"
              class={`plain ${isOutlier ? "outlier" : ""}`}
              disabled={isReport}
              data-tip={`${capitalized(step.words)}: ${quantity(step.length, "duration")}\nClick: show in the timeline`}
              onClick={() => openAt(step.from, step.length)}
            >
              {text}
            </button>
          )}
        </span>
      ))}
    </div>
  );
}

function Axis({ from, to, width }: { from: number; to: number; width: number }) {
  const { divisor, unit } = scaleFor("duration", [to]);
  const step = (ticks((to - from) / divisor, 6)[1] ?? 1) * divisor;
  const first = Math.ceil(from / step);
  const marks = Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => (first + i) * step);
  const shown = marks.map((mark) => ({ mark, x: ((mark - from) / (to - from)) * width }))
    .filter(({ x }) => x < width - 30);
  return (
    <div class="axis" aria-hidden="true">
      {shown.map(({ mark, x }, i) => (
        <span key={mark} style={{ left: `${x}px` }}>
          {Number((mark / divisor).toPrecision(6))} {i === 0 && unit}
        </span>
      ))}
    </div>
  );
}

/** A column in words: its time, what ran, and the gap that it is in. */
function describe(strip: Strip, column: number, name: string): string {
  const at = strip.begins[column]!, length = strip.lengths[column]!, gap = strip.gaps[column];
  const parts = strip.kinds.map(({ kind, values }) => ({
    name: kindName(kind),
    share: values[column]! / Math.max(1, length),
  }))
    .filter(({ share }) => share >= 0.005).sort((a, b) => b.share - a.share);
  return [
    `${name}, ${quantity(at, "instant")} to ${quantity(at + length, "instant")}`,
    ...parts.map(({ name, share }) => `${name} ${percent(share)} %`),
    gap && `in a gap of ${quantity(gap.length, "duration")}`,
    !isReport && "Click: show in the timeline · drag: zoom",
  ].filter(Boolean).join("\n");
}

/** The strips as one sentence each. */
function inWords(strip: Strip, name: string): string {
  const { from, to } = spanOf(strip);
  const parts = strip.kinds.map(({ kind, total }) => `${kindName(kind)} ${percent(total / Math.max(1, to - from))} %`);
  return `${name}: ${parts.join(", ")}.`;
}

interface Drawn {
  strips: Strip[];
  heights: number[];
  steps: Step[];
  nameOf: (strip: Strip) => string;
}

/** The strips under one pointer: hover explains a column, a click opens the timeline there, dragging zooms. */
function Strips({ strips, heights, steps, nameOf }: Drawn) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [marked, mark] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const { from, to } = spanOf(strips[0]!);
  const edges = width ? edgesOf(strips[0]!, width) : [];
  const tops = heights.map((_, i) => heights.slice(0, i).reduce((sum, height) => sum + height + 3, 0));
  const count = strips[0]!.begins.length;
  const time = (x: number) => from + (Math.max(0, Math.min(width, x)) / width) * (to - from);
  const pixel = (event: PointerEvent) => event.clientX - box.current!.getBoundingClientRect().left;
  const rowAt = (event: PointerEvent) => {
    const y = event.clientY - box.current!.getBoundingClientRect().top;
    return strips[Math.max(0, tops.findLastIndex((top) => top <= y))]!;
  };
  const point = (column: number, strip = strips[0]!) => {
    mark(column);
    const frame = box.current!.getBoundingClientRect();
    showTip(describe(strip, column, nameOf(strip)), frame.left + edges[column]! + 8, frame.bottom + 4);
  };
  const leave = () => (mark(null), setDrag(null), hideTip());
  const open = (column: number, strip = strips[0]!) => {
    if (isReport) return;
    hideTip();
    const gap = strip.gaps[column];
    if (gap) openAt(gap.from, gap.length, true);
    else openAt(strip.begins[column]!, strip.lengths[column]!);
  };
  const drop = (event: PointerEvent) => {
    if (!drag) return;
    const ends = [drag[0], pixel(event)].sort((a, b) => a - b) as [number, number];
    leave();
    if (ends[1] - ends[0] < 4) open(columnAt(edges, ends[0]), rowAt(event));
    else if (!isReport) zoomTo({ from: time(ends[0]), to: time(ends[1]) });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, PageUp: 20, PageDown: -20, Home: -count, End: count }[event.key];
    const around = strips[0]!.begins[marked ?? 0]!;
    if (by !== undefined) {
      point(Math.max(0, Math.min(count - 1, marked === null ? (by > 0 ? 0 : count - 1) : marked + by)));
    } else if (event.key === "Enter" && marked !== null) open(marked);
    else if (event.key === "+" && !isReport) {
      zoomTo({ from: Math.max(from, around - (to - from) / 4), to: around + (to - from) / 4 });
    } else if (event.key === "Escape" && zoom.value) zoomTo(null);
    else return;
    event.preventDefault();
  };
  const height = tops.at(-1)! + heights.at(-1)!;
  const text = marked === null
    ? strips.map((strip) => inWords(strip, nameOf(strip))).join(" ")
    : describe(strips[0]!, marked, nameOf(strips[0]!));
  return (
    <div class="plot">
      <StepMarks steps={steps} from={from} to={to} width={width} />
      <div
        ref={box}
        class="strips"
        {...slider("Activity over time; arrow keys move, Enter shows the place in the timeline", count, marked, text)}
        style={{ height: `${height}px` }}
        onPointerDown={(event) => event.button === 0 && setDrag([pixel(event), pixel(event)])}
        onPointerMove={(event) => {
          const x = pixel(event);
          if (drag) setDrag([drag[0], x]);
          point(columnAt(edges, x), rowAt(event));
        }}
        onPointerUp={drop}
        onPointerLeave={leave}
        onDblClick={() => zoom.value && zoomTo(null)}
        onKeyDown={onKeyDown}
        onBlur={leave}
      >
        {width > 0 && (
          <svg width={width} height={height} aria-hidden="true">
            {strips.map((strip, i) => (
              <Row key={strip.device} strip={strip} width={width} height={heights[i]!} y={tops[i]!} />
            ))}
            {marked !== null && (
              <line x1={edges[marked]! + 0.5} x2={edges[marked]! + 0.5} y1={0} y2={height} class="cursor" />
            )}
            {drag && Math.abs(drag[1] - drag[0]) > 3 && (
              <rect class="dragged" x={Math.min(...drag)} y={0} width={Math.abs(drag[1] - drag[0])} height={height} />
            )}
          </svg>
        )}
      </div>
      <Axis from={from} to={to} width={width} />
    </div>
  );
}

function Content({ table, steps, noun }: { table: Table; steps: Table | null; noun: string }) {
  const all = stripsOf(table);
  if (!all.length) return null;
  const devices = all.filter(({ device }) => device !== null).sort((a, b) => busyShare(a) - busyShare(b));
  const shown = devices.slice(0, MOST_DEVICES);
  const strips = [...shown, ...all.filter(({ device }) => device === null)];
  const heights = strips.map(({ device }) => device === null && shown.length ? HOST_HEIGHT : heightOf(shown.length));
  const nameOf = ({ device }: Strip) => device === null ? "Host" : `${noun} ${device}`;
  const { from, to } = spanOf(strips[0]!);
  const marked = steps ? stepsIn(steps, from, to) : [];
  const most = devices.length > shown.length ? `the ${MOST_DEVICES} least busy of ${decimal(devices.length)}` : "";
  return (
    <section class="card strip" aria-label="Activity over time" style={{ "--marks": marked.length ? "18px" : "2px" }}>
      <header>
        <h2>{shown.length ? `${noun} activity` : "Host activity"}</h2>
        <KindLegend strips={shown.length ? shown : strips} />
        <span>
          {zoom.value
            ? (
              <button
                type="button"
                class="link"
                onClick={() => zoomTo(null)}
              >
                Show all
              </button>
            )
            : most}
        </span>
      </header>
      <div class="names" aria-hidden="true">
        {strips.map((strip, i) => (
          <span key={strip.device} style={{ height: `${heights[i]! + 3}px`, lineHeight: `${heights[i]}px` }}>
            {nameOf(strip)}
          </span>
        ))}
      </div>
      <Strips
        strips={strips}
        heights={heights}
        steps={marked}
        nameOf={nameOf}
      />
    </section>
  );
}

/** What the devices and the host did over time. */
export function ActivityStrip({ steps, noun }: { steps: Table | null; noun: string }) {
  const range = zoom.value;
  const shown = useAnswer("activity_strip", range ? { from_ns: String(range.from), to_ns: String(range.to) } : {});
  if (shown.answer?.state === "missing") return null;
  return (
    <AnswerView shown={shown} title="Activity over time">
      {(table) => <Content table={table} steps={steps} noun={noun} />}
    </AnswerView>
  );
}
