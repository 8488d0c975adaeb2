/** Links to slices. */

import { type ComponentChildren, createContext, Fragment, h } from "preact";
import { useContext, useState } from "preact/hooks";
import type { SliceSummary } from "../../api/timeline_types.ts";
import { decimal, exact, quantity, shorten } from "../../format/numbers.ts";
import { readableName } from "../../format/readable_names.ts";
import { colorOf } from "../draw/colors.ts";

/** Jumps to a slice of the trace. */
export const JumpContext = createContext<(slice: number) => void>(() => {});

const LONGEST = 90;

/** A slice's name and how long it lasted; a click selects it and brings it into sight. */
export function SliceLink({ summary, children }: { summary: SliceSummary; children?: ComponentChildren }) {
  const jump = useContext(JumpContext);
  const { slice, name, category, dur_ns } = summary;
  const isInstant = dur_ns === 0;
  return (
    <span class="slice">
      <i style={{ background: colorOf(category) }} aria-hidden="true" />
      <button
        type="button"
        class="link"
        data-tip={`${name}\n${category}, ${isInstant ? "an instant" : exact(dur_ns, "duration")}`}
        onClick={() => jump(slice)}
      >
        {shorten(readableName(name), LONGEST) || "(no name)"}
      </button>
      <span class="quiet">{children ?? (isInstant ? "instant" : quantity(dur_ns, "duration"))}</span>
    </span>
  );
}

const FEW = 8;

/** A list of slices, the first few until expanded; `of` is the total count. */
export function SliceList(
  { slices, of = slices.length, label }: { slices: SliceSummary[]; of?: number; label: string },
) {
  const [isWhole, showAll] = useState(false);
  const shown = isWhole ? slices : slices.slice(0, FEW);
  return (
    <>
      <ul class="slices" aria-label={label}>
        {shown.map((summary) => (
          <li key={summary.slice}>
            <SliceLink summary={summary} />
          </li>
        ))}
      </ul>
      {slices.length > FEW && (
        <button
          type="button"
          class="link"
          aria-expanded={isWhole}
          onClick={() => showAll(!isWhole)}
        >
          {isWhole ? "Fewer" : `Show ${slices.length < of ? "the first " : "all "}${decimal(slices.length)}`}
        </button>
      )}
      {isWhole && slices.length < of && <p class="quiet">of {decimal(of)}</p>}
    </>
  );
}
