import { exact, type Kind, percent, scaled, scaleFor } from "../format/numbers.ts";
import { useRef } from "preact/hooks";
import type { Part } from "./donut.tsx";
import { cutText, useWidth } from "../ui/measure.ts";
import { SavePicture } from "../table/save.tsx";

interface BarsProps {
  parts: Part[];
  kind: Kind;
  title: string;
  note: string;
  /** What all parts together are; null where they are no parts of a whole. */
  whole: number | null;
}

const NOT_NAME = 300; // pixels of a line that are not its name

/** One bar a part, the longest first: for parts of no whole, and for so many that a ring would be one gray slice. */
export function Bars({ parts, kind, title, note, whole }: BarsProps) {
  const list = useRef<HTMLOListElement>(null);
  const room = useWidth(list) - NOT_NAME;
  const scale = scaleFor(kind, parts.map(({ value }) => value));
  // The rest is many rows: as a bar it would look like one row, and make all others short.
  const most = parts.reduce((largest, { value, isRest }) => isRest ? largest : Math.max(largest, value), 0);
  return (
    <figure class="card bars">
      <figcaption>
        {title} <span>{scale.unit && `${scale.unit} · `}{note}</span>
        <SavePicture title={title} />
      </figcaption>
      <ol ref={list}>
        {parts.map(({ name, value, color, isRest }, i) => (
          <li
            key={i}
            data-tip={`${name}\n${exact(value, kind)}${whole === null ? "" : ` · ${percent(value / whole)} %`}`}
          >
            <span class="name">{cutText(name, room, 12)}</span>
            <span class="length">
              {!isRest && <i style={{ background: color, width: `${(100 * value) / most}%` }} />}
            </span>
            <span>{scaled(value, scale)}</span>
            {whole !== null && <span class="quiet">{percent(value / whole)} %</span>}
          </li>
        ))}
      </ol>
      {!parts.length && <p class="quiet">No positive values.</p>}
    </figure>
  );
}
