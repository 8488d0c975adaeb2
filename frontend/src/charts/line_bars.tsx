/** A bar for each line of a heat map: the parts that its cells add up to, on average. */

import { h } from "preact";
import type { Table } from "../api/types.ts";
import { exact, scaled, scaleFor } from "../format/numbers.ts";
import type { Matrix } from "./matrix.ts";
import { timePart } from "../format/time_parts.ts";

export type LineBar = number[];

/** The mean of each part over the cells of each line. */
export const lineBars = ({ lines, columns, rows }: Matrix, data: Table["data"], parts: string[]): LineBar[] =>
  lines.map((_, line) => {
    const own = rows.subarray(line * columns.length, (line + 1) * columns.length).filter((row) => row >= 0);
    return parts.map((part) =>
      own.reduce((sum, row) => sum + Number(data[part]?.[row] ?? 0), 0) / Math.max(1, own.length)
    );
  });

const total = (bar: LineBar) => bar.reduce((sum, value) => sum + value, 0);
const NUMBER = 44; // pixels of a total behind its bar

interface Drawn {
  bars: LineBar[];
  parts: string[];
  x: number;
  y: number;
  width: number;
  lineHeight: number;
}

/** Numbers stand in the parts that have room for them, and the total behind each bar. */
export function LineBars({ bars, parts, x, y, width, lineHeight }: Drawn) {
  const longest = Math.max(1, ...bars.map(total)), drawn = parts.map(timePart);
  const scale = scaleFor("duration", bars.flat());
  const isTall = lineHeight >= 14, gap = isTall ? 2 : 0;
  return bars.map((bar, line) => {
    let at = x;
    return (
      <g key={line}>
        {bar.map((value, i) => {
          const length = Math.max(0, width - NUMBER) * value / longest, from = at;
          at += length;
          return (
            <g key={i}>
              <rect
                x={from}
                y={y + line * lineHeight + gap}
                width={length}
                height={lineHeight - 2 * gap}
                style={{ fill: drawn[i]!.color }}
                data-tip={`${drawn[i]!.name}: ${exact(value, "duration")}`}
              />
              {isTall && length >= 34 && (
                <text
                  class="inside"
                  style={{ "--fill": drawn[i]!.color }}
                  x={from + length / 2}
                  y={y + (line + 0.5) * lineHeight + 4}
                  text-anchor="middle"
                >
                  {scaled(value, scale)}
                </text>
              )}
            </g>
          );
        })}
        {isTall && <text x={at + 6} y={y + (line + 0.5) * lineHeight + 4}>{scaled(total(bar), scale)}</text>}
      </g>
    );
  });
}
