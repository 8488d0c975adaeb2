import type { Share } from "./chart_geometry.ts";
import { slice, sums } from "./chart_geometry.ts";
import { useRef } from "preact/hooks";
import { fitText, useWidth } from "../ui/measure.ts";
import { SavePicture } from "../table/save.tsx";
import { exact, type Kind, percent, quantity, scaled, scaleFor } from "../format/numbers.ts";

/** Sixteen colors that differ in hue and in lightness, so that neighbors differ without color too. */
const HUES = [250, 40, 150, 320, 90, 200, 15, 285];
const COLORS = [0, 1].flatMap((deep) =>
  HUES.map((hue) =>
    `light-dark(oklch(${deep ? 0.48 : 0.66} 0.12 ${hue}), oklch(${deep ? 0.62 : 0.78} ${deep ? 0.12 : 0.1} ${hue}))`
  )
);
const colorIndex = new Map<string, number>();

function hash(text: string): number {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) | 0;
  return value >>> 0;
}

/** The color of each name: always the same for a name; if two names in one chart collide, the later takes the next color. */
export function colorsOf(names: string[]): string[] {
  const used = new Set<number>();
  return names.map((name) => {
    let color = colorIndex.get(name) ?? hash(name) % COLORS.length;
    for (let i = 0; used.has(color) && i < COLORS.length; i++) color = (color + 1) % COLORS.length;
    used.add(color);
    if (!colorIndex.has(name)) colorIndex.set(name, color);
    return COLORS[color]!;
  });
}

export interface Part {
  name: string;
  value: number;
  color: string;
  /** Whether it is all that isn't named. */
  isRest?: boolean;
}

/** The shares' names and colors; the rest is gray. */
export function parts(shares: Share[], nameOf: (row: number) => string): Part[] {
  const names = shares.map(({ row }) => (row === null ? "other" : nameOf(row) || "(no name)"));
  const colors = colorsOf(names);
  return shares.map(({ row, value }, i) => ({
    name: names[i]!,
    value,
    color: row === null ? "var(--other)" : colors[i]!,
    isRest: row === null,
  }));
}

const tipText = ({ name, value }: Part, total: number, kind: Kind) =>
  `${name}\n${exact(value, kind)} · ${percent(value / total)} %`;

/** The ring alone, with the total in its middle. */
export function Ring({ parts, kind, title }: { parts: Part[]; kind: Kind; title: string }) {
  const ends = sums(parts.map(({ value }) => value));
  const total = ends.at(-1)!;
  const scale = scaleFor(kind, [total]);
  return (
    <svg viewBox="-102 -102 204 204" role="img" aria-label={`${title}: ${quantity(total, kind)}`}>
      {parts.map((part, i) => (
        <path
          key={i}
          d={slice(ends[i]! / total, ends[i + 1]! / total)}
          style={{ fill: part.color }}
          data-tip={tipText(part, total, kind)}
        />
      ))}
      <text y={scale.unit ? 2 : 9}>{scaled(total, scale)}</text>
      {scale.unit && <text class="unit" y="26">{scale.unit}</text>}
    </svg>
  );
}

const NOT_NAME = 140; // pixels of a line in the list that are not its name

/** A ring with a legend that names each slice. */
export function Donut({ parts, kind, title, note }: { parts: Part[]; kind: Kind; title: string; note: string }) {
  const list = useRef<HTMLOListElement>(null);
  const room = useWidth(list) - NOT_NAME;
  const total = parts.reduce((sum, { value }) => sum + value, 0);
  const scale = scaleFor(kind, parts.map(({ value }) => value));
  return (
    <figure class="card donut">
      <figcaption>
        {title} <span>{scale.unit && `${scale.unit} · `}{note}</span>
        <SavePicture title={title} />
      </figcaption>
      {total > 0 && <Ring parts={parts} kind={kind} title={title} />}
      <ol ref={list}>
        {parts.map((part, i) => (
          <li key={i} data-tip={tipText(part, total, kind)}>
            <i class="swatch" style={{ background: part.color }} />
            <span class="name">{fitText(part.name, room, 12)}</span>
            <span>{scaled(part.value, scale)}</span>
            <span class="quiet">{percent(part.value / total)} %</span>
          </li>
        ))}
      </ol>
      {total === 0 && <p class="quiet">No positive values.</p>}
    </figure>
  );
}
