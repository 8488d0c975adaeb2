/** Pointer and keys in the chart of steps: point, drag to zoom, scroll sideways, arrow keys. */

import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { address, go } from "../app/router.ts";
import { parseRange, type Range, shiftRange, zoomRange } from "./step_range.ts";
import { hideTip, showTip } from "../ui/tip.tsx";

/** A column of the chart: the highest step of a group of neighbors. */
export interface Bar {
  step: number;
  of: number;
  x: number;
  width: number;
}

const show = ({ from, to }: Range, count: number, how: "push" | "replace") =>
  go({ steps: from === 0 && to === count ? "" : `${from}-${to}` }, how);

interface Chart {
  box: RefObject<HTMLDivElement | null>;
  bars: Bar[];
  left: number;
  top: number;
  width: number;
  count: number;
  tipText: (bar: Bar) => string;
}

/** The bar under a point, as a number among the bars; before the first where the axis is. */
const barAt = ({ box, bars, left, width }: Chart, clientX: number) => {
  const x = clientX - box.current!.getBoundingClientRect().left - left;
  return x < 0 ? -1 : Math.min(bars.length - 1, Math.floor((x * bars.length) / Math.max(1, width - left)));
};

/** The marked bar, the bars that are dragged over, and what to do on each event. */
export function useStepsInput(chart: Chart) {
  const { bars, box, count, tipText } = chart;
  const [marked, mark] = useState<number | null>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const range = parseRange(address.value.steps, count);
  const point = (index: number) => {
    const bar = bars[Math.max(0, Math.min(bars.length - 1, index))];
    if (!bar) return;
    mark(bars.indexOf(bar));
    const frame = box.current!.getBoundingClientRect();
    showTip(tipText(bar), frame.left + bar.x + bar.width + 8, frame.top + chart.top);
  };
  const leave = () => {
    mark(null);
    hideTip();
  };
  const drop = () => {
    if (drag && drag.from !== drag.to) {
      const [first, last] = [drag.from, drag.to].sort((a, b) => a - b).map((at) => bars[at]!);
      leave();
      show({ from: groupStart(bars, first!, range), to: groupEnd(bars, last!, range) }, count, "push");
    }
    setDrag(null);
  };
  return { marked, drag, range, point, leave, drop, setDrag };
}

const groupStart = (bars: Bar[], bar: Bar, { from }: Range) =>
  from + bars.slice(0, bars.indexOf(bar)).reduce((sum, { of }) => sum + of, 0);
const groupEnd = (bars: Bar[], bar: Bar, range: Range) => groupStart(bars, bar, range) + bar.of;

/** The key handler: marks bars, and shows other ranges of steps. */
function keysOf({ count, bars }: Chart, { marked, range, point }: ReturnType<typeof useStepsInput>) {
  /** Marks a bar; beyond the ends of what is drawn, the range moves along. */
  const turnTo = (at: number, by: number) => {
    if (at < 0 || at >= bars.length) {
      show(shiftRange(range, Math.sign(by) * (bars[0]?.of ?? 1), count), count, "replace");
    }
    point(at);
  };
  return (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, Home: -bars.length, End: bars.length };
    const factors: Record<string, number> = { "+": 0.5, "=": 0.5, "-": 2 };
    const [by, factor] = [steps[event.key], factors[event.key]];
    const around = bars[marked ?? Math.floor(bars.length / 2)]?.step ?? 0;
    const isWhole = range.from === 0 && range.to === count;
    if (event.key === "Escape" && !isWhole) show({ from: 0, to: count }, count, "push");
    else if (factor) show(zoomRange(range, factor, around, count), count, "push");
    else if (by === undefined) return;
    else turnTo((marked ?? (by > 0 ? -1 : bars.length)) + by, by);
    event.preventDefault();
  };
}

/** The listeners of the chart's box. */
export function listeners(chart: Chart, input: ReturnType<typeof useStepsInput>) {
  const { count } = chart;
  const { drag, range, point, leave, drop, setDrag } = input;
  const isWhole = range.from === 0 && range.to === count;
  return {
    onPointerDown: (event: PointerEvent) => {
      const at = barAt(chart, event.clientX);
      if (event.button === 0 && at >= 0) setDrag({ from: at, to: at });
    },
    onPointerMove: (event: PointerEvent) => {
      const at = barAt(chart, event.clientX);
      if (at < 0) return leave();
      if (drag && at !== drag.to) setDrag({ ...drag, to: at });
      point(at);
    },
    onPointerUp: drop,
    onPointerLeave: () => (leave(), setDrag(null)),
    onDblClick: () => show({ from: 0, to: count }, count, "push"),
    onWheel: (event: WheelEvent) => {
      const by = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (isWhole || !by) return;
      event.preventDefault();
      show(
        shiftRange(range, Math.sign(by) * Math.max(1, Math.round((range.to - range.from) / 20)), count),
        count,
        "replace",
      );
    },
    onKeyDown: keysOf(chart, input),
    onBlur: leave,
  };
}
