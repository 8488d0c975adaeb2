/** The step of each run as a dot, the levels between changes as lines, and the changes with their growth. */

import { h } from "preact";
import { useRef } from "preact/hooks";
import type { History } from "../api/types.ts";
import { decimal, percent, quantity, scaleFor } from "../format/numbers.ts";
import { useWidth } from "../ui/measure.ts";
import { decimalsOf, marksAround, marksWithin } from "./curve_lines.ts";
import { ValueAxis } from "./value_axis.tsx";

const ROOM_BELOW = 0.995, ROOM_ABOVE = 1.005; // of the values
const HEIGHT = 200, TOP = 24, FOOT = 24, LEFT = 64, RIGHT = 12;

export interface Run {
  row: number;
  step: number;
  isCompared: boolean;
}

/** The runs with a step, by the row of the table. */
export const runsIn = ({ data }: History): Run[] =>
  data.step_ns!.flatMap((step, row) =>
    typeof step === "number" ? [{ row, step, isCompared: data.not_compared![row] === null }] : []
  );

export interface Level {
  /** The first and the last row. */
  from: number;
  to: number;
  step: number;
}

/** The levels before, between and after the changes; none without a change. */
export function levelsIn({ changes, data }: History): Level[] {
  const starts = [0, ...changes.map(({ nth }) => nth - 1), data.run!.length];
  const steps = changes.length ? [changes[0]!.before_ns, ...changes.map(({ after_ns }) => after_ns)] : [];
  return steps.map((step, i) => ({ from: starts[i]!, to: starts[i + 1]! - 1, step }));
}

const signed = (growth: number) => `${growth < 0 ? "−" : "+"}${percent(Math.abs(growth))} %`;

export function RunChart({ table, open }: { table: History; open: (row: number) => void }) {
  const box = useRef<HTMLElement>(null), width = Math.max(320, useWidth(box));
  const runs = runsIn(table), count = table.data.run!.length;
  const steps = runs.filter(({ isCompared }) => isCompared).map(({ step }) => step);
  const drawn = runs.filter(({ isCompared }) => isCompared || !steps.length);
  const all = drawn.map(({ step }) => step);
  const scale = scaleFor("duration", all);
  const ends = [ROOM_BELOW * Math.min(...all), ROOM_ABOVE * Math.max(...all)].map((end) => end / scale.divisor);
  const units = marksAround(ends[0]!, ends[1]!, 4), marks = units.map((mark) => mark * scale.divisor);
  const [low, high] = [marks[0] ?? 0, marks.at(-1) ?? 1], right = width - RIGHT, base = HEIGHT - FOOT;
  const x = (row: number) => LEFT + 8 + (right - LEFT - 16) * row / Math.max(1, count - 1);
  const y = (value: number) => base - (base - TOP) * (value - low) / Math.max(1, high - low);
  const nameOf = (row: number) =>
    `${table.data.run![row]}: ${quantity(table.data.step_ns![row] as number, "duration")}`;
  return (
    <figure class="card run-chart" ref={box}>
      {drawn.length > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label="Step of each run">
          <g>
            <ValueAxis
              marks={marks}
              left={LEFT}
              right={right}
              y={y}
              text={(mark) => decimal(mark / scale.divisor, decimalsOf(units))}
              unit={scale.unit}
            />
            {marksWithin(1, count, Math.max(2, Math.floor(width / 90))).filter(Number.isInteger).map((mark) => (
              <text key={mark} x={x(mark - 1)} y={HEIGHT - 6} text-anchor="middle">{mark}</text>
            ))}
            {levelsIn(table).map(({ from, to, step }) => (
              <line key={from} class="level-line" x1={x(from)} x2={x(to)} y1={y(step)} y2={y(step)} />
            ))}
            {table.changes.map(({ nth, growth_frac }) => (
              <g key={nth}>
                <line class="change-line" x1={x(nth - 1.5)} x2={x(nth - 1.5)} y1={TOP} y2={base} />
                <text x={x(nth - 1.5)} y={14} text-anchor="middle">run {nth}: {signed(growth_frac)}</text>
              </g>
            ))}
          </g>
          {drawn.map(({ row, isCompared }) => (
            <circle
              key={row}
              class={isCompared ? "" : "other"}
              cx={x(row)}
              cy={y(table.data.step_ns![row] as number)}
              r={count > 200 ? 2 : 3.5}
              data-tip={nameOf(row)}
              onClick={() => open(row)}
            />
          ))}
        </svg>
      )}
      <figcaption class="quiet">
        Average step of each run, in order of time; runs of other jobs are left out.
      </figcaption>
    </figure>
  );
}
