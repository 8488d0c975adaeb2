/** A bar of parts that add up to its whole, and what its colors mean: the one way to draw both. */

import { type ComponentChildren, h } from "preact";
import { exact, percent, type Scale, scaled } from "../format/numbers.ts";

export interface BarPart {
  name: string;
  color: string;
  value: number;
  /** The row of the table that it is. */
  row?: number;
  /** Lines below its name and time, on hover. */
  notes?: string[];
  isDark?: boolean;
}

const LABELED = 0.14; // of the bar: a smaller part has no room for its name and its share
const NAMED = 0.07; // the same of a name alone, which may be cut

export const Swatch = ({ color }: { color: string }) => <i class="swatch" style={{ background: color }} />;

export const Legend = ({ parts }: { parts: { name: string; color: string; isIdle?: boolean }[] }) => (
  <ul class="legend">
    {parts.map(({ name, color, isIdle }) => (
      <li key={name} class={isIdle ? "idle" : ""}>
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
  const shown = parts.filter(({ value }) => value > 0);
  const drawn = shown.map((part, i) => {
    const { name, color, value, row, isDark = name === "Kernel" } = part;
    const look = {
      class: isDark ? "dark" : "",
      style: { background: color, width: `${100 * value / scale}%` },
      "data-tip": partText(part, whole),
    };
    if (!onPick || row === undefined) {
      return <i key={i} {...look}>{isNamed && value >= LABELED * whole && `${name} ${percent(value / whole)} %`}</i>;
    }
    return (
      <button key={i} type="button" {...look} aria-label={partText(part, whole)} onClick={() => onPick(row)}>
        {value >= NAMED * whole && `${name} · ${scaled(value, units!)}`}
      </button>
    );
  });
  if (onOpen) return <button type="button" class="stacked" aria-label={label} onClick={onOpen}>{drawn}</button>;
  return <div class="stacked" role={onPick ? "group" : "img"} aria-label={label}>{drawn}{children}</div>;
}
