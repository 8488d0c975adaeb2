/** A bar of parts that add up to its whole, and what its colors mean: the one way to draw both. */

import { type ComponentChildren, h } from "preact";
import { exact, percent } from "../format/numbers.ts";

export interface BarPart {
  name: string;
  color: string;
  value: number;
}

const LABELED = 0.14; // of the bar: a smaller part has no room for its name

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
export const partText = ({ name, value }: BarPart, whole: number): string =>
  `${name}: ${exact(value, "duration")} · ${percent(value / whole)} %`;

interface Props {
  parts: BarPart[];
  whole: number;
  /** What the full width stands for, where several bars have one scale. */
  scale?: number;
  label: string;
  isNamed?: boolean;
  /** Makes it a button. */
  onOpen?: () => void;
  /** Behind the last part. */
  children?: ComponentChildren;
}

export function StackedBar({ parts, whole, scale = whole, label, isNamed = false, onOpen, children }: Props) {
  const drawn = parts.filter(({ value }) => value > 0).map((part) => (
    <i
      key={part.name}
      class={part.name === "Kernel" ? "dark" : ""}
      style={{ background: part.color, width: `${100 * part.value / scale}%` }}
      data-tip={partText(part, whole)}
    >
      {isNamed && part.value >= LABELED * whole && `${part.name} ${percent(part.value / whole)} %`}
    </i>
  ));
  return onOpen
    ? <button type="button" class="stacked" aria-label={label} onClick={onOpen}>{drawn}</button>
    : <div class="stacked" role="img" aria-label={label}>{drawn}{children}</div>;
}
