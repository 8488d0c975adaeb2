/** A bar of parts that add up to its whole, and what its colors mean: the one way to draw both. */

import { type ComponentChildren, h } from "preact";
import { useRef } from "preact/hooks";
import { exact, percent, type Scale, scaled } from "../format/numbers.ts";
import { cutText, textWidth, useWidth } from "../ui/measure.ts";

export interface BarPart {
  name: string;
  color: string;
  value: number;
  /** The row of the table that it is. */
  row?: number;
  /** Lines below its name and time, on hover. */
  notes?: string[];
}

const AROUND = 14; // pixels at both sides of a label
const LEAST_ROOM = 60; // for a name without its end

export const Swatch = ({ color }: { color?: string }) => <i class="swatch" style={{ background: color }} />;

/** What colors mean; those without a color of their own have it from their class. */
export const Legend = ({ parts }: { parts: { name: string; color?: string; look?: string }[] }) => (
  <ul class="legend">
    {parts.map(({ name, color, look }) => (
      <li key={name} class={look}>
        <Swatch color={color} />
        {name}
      </li>
    ))}
  </ul>
);

/** What a part is, and which share of the whole. */
export const partText = ({ name, value, notes = [] }: BarPart, whole: number): string =>
  [`${name}: ${exact(value, "duration")} · ${percent(value / whole)} %`, ...notes].join("\n");

interface Props {
  parts: BarPart[];
  whole: number;
  /** What the full width stands for, where several bars have one scale. */
  scale?: number;
  label: string;
  isNamed?: boolean;
  /** Makes it a button. */
  onOpen?: () => void;
  /** Makes each part a button, with its name and its time in `units` as far as there is room. */
  onPick?: (row: number) => void;
  units?: Scale;
  /** Behind the last part. */
  children?: ComponentChildren;
}

export function StackedBar(
  { parts, whole, scale = whole, label, isNamed = false, onOpen, onPick, units, children }: Props,
) {
  const box = useRef<HTMLDivElement & HTMLButtonElement>(null), width = useWidth(box);
  const shown = parts.filter(({ value }) => value > 0);
  const drawn = shown.map((part, i) => {
    const { name, color, value, row } = part;
    const look = {
      style: { "--fill": color, width: `${100 * value / scale}%` },
      "data-tip": partText(part, whole),
    };
    const room = width * value / scale - AROUND;
    /** The name with what belongs to it, as far as there is room. */
    const fitting = (text: string) => {
      if (textWidth(text, 13, 650) <= room) return text;
      return room < LEAST_ROOM ? "" : cutText(name.replace("aten::", ""), room, 13, 650);
    };
    if (!onPick || row === undefined) {
      return <i key={i} {...look}>{isNamed && fitting(`${name} ${percent(value / whole)} %`)}</i>;
    }
    return (
      <button key={i} type="button" {...look} aria-label={partText(part, whole)} onClick={() => onPick(row)}>
        {fitting(`${name} · ${scaled(value, units!)} ${units!.unit}`)}
      </button>
    );
  });
  if (onOpen) {
    return <button ref={box} type="button" class="stacked" aria-label={label} onClick={onOpen}>{drawn}</button>;
  }
  return <div ref={box} class="stacked" role={onPick ? "group" : "img"} aria-label={label}>{drawn}{children}</div>;
}
