/** How long slices last. */

import { Fragment, h } from "preact";
import { useRef } from "preact/hooks";
import type { DurationStats } from "../api/timeline_types.ts";
import { plural, quantity } from "../format/numbers.ts";
import { Fact } from "./details.tsx";
import { useWidth } from "./measure.ts";

const HEIGHT = 64;
const BASE = HEIGHT - 16;

interface BarsProps {
  heights: number[];
  tipOf: (bar: number) => string;
  /** Whether a bar has the accent color. */
  isOwn?: (bar: number) => boolean;
  /** What stands below the first and the last bar. */
  ends: [string, string];
  label: string;
}

/** Bars next to each other. */
export function SmallBars({ heights, tipOf, isOwn = () => false, ends, label }: BarsProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const most = Math.max(1, ...heights);
  const each = width / heights.length;
  const heightOf = (number: number) => number ? Math.max(2, (number / most) * (BASE - 2)) : 0;
  return (
    <div ref={box} class="durations">
      {width > 0 && (
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} role="img" aria-label={label}>
          {heights.map((number, i) => (
            <g key={i} data-tip={tipOf(i)}>
              <rect class="hit-area" x={i * each} y={0} width={each} height={BASE} />
              <rect
                class={isOwn(i) ? "own" : ""}
                x={i * each + 0.5}
                y={BASE - heightOf(number)}
                width={Math.max(1, each - 1)}
                height={heightOf(number)}
              />
            </g>
          ))}
          <text x={0} y={HEIGHT - 3}>{ends[0]}</text>
          <text x={width} y={HEIGHT - 3} text-anchor="end">{ends[1]}</text>
        </svg>
      )}
    </div>
  );
}

const time = (value: number | undefined) => quantity(value, "duration");

/** A histogram of durations, whose ends are the shortest and the longest, and their mean and quantiles. */
export function Durations({ stats, dur }: { stats: DurationStats; dur?: number }) {
  const { bins: { from_ns, to_ns, count }, mean_ns, min_ns, p50_ns, p95_ns, max_ns } = stats;
  const last = count.length - 1;
  const isOwn = (i: number) =>
    dur !== undefined && from_ns[i]! <= dur && (dur < to_ns[i]! || (i === last && dur <= to_ns[i]!));
  return (
    <>
      {count.length > 0 && (
        <SmallBars
          heights={count}
          tipOf={(i) =>
            `${time(from_ns[i])} to ${time(to_ns[i])}: ${plural(count[i]!, "slice")}${
              isOwn(i) ? ", this one too" : ""
            }`}
          isOwn={isOwn}
          ends={[time(min_ns), time(max_ns)]}
          label="How long they last"
        />
      )}
      <dl class="numbers">
        <Fact title="Mean">{time(mean_ns)}</Fact>
        <Fact title="Median">{time(p50_ns)}</Fact>
        <Fact title="95 % within">{time(p95_ns)}</Fact>
      </dl>
    </>
  );
}
