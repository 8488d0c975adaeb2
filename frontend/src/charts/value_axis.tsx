import { Fragment, h } from "preact";

interface Props {
  marks: number[];
  left: number;
  right: number;
  y: (mark: number) => number;
  text: (mark: number) => string;
  /** Above the highest mark. */
  unit?: string;
}

/** Horizontal grid lines, each with its value. */
export const ValueAxis = ({ marks, left, right, y, text, unit }: Props) => (
  <>
    {marks.map((mark) => (
      <g key={mark}>
        <line class={mark === 0 ? "zero" : "grid"} x1={left} x2={right} y1={y(mark)} y2={y(mark)} />
        <text x={left - 8} y={y(mark) + 4} text-anchor="end">{text(mark)}</text>
      </g>
    ))}
    <text x={left - 8} y={12} text-anchor="end">{unit}</text>
  </>
);
