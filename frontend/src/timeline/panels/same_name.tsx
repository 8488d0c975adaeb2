/** The selected slice among all slices of its name. */

import { useContext, useRef } from "preact/hooks";
import { decimal, plural, quantity } from "../../format/numbers.ts";
import { useWidth } from "../../ui/measure.ts";
import type { SliceFacts } from "../../api/timeline_types.ts";
import { JumpContext } from "./slice_link.tsx";

type SameName = SliceFacts["same_name"];

const HEIGHT = 64;
const BASE = HEIGHT - 16;

/** A histogram of durations; the bin that holds `dur` has the accent color. */
function DurationHistogram({ bins: { from_ns, to_ns, count }, dur }: { bins: SameName["bins"]; dur: number }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const most = Math.max(1, ...count);
  const each = width / Math.max(1, count.length);
  const last = count.length - 1;
  const heightOf = (number: number) => number ? Math.max(2, (number / most) * (BASE - 2)) : 0;
  const isOwn = (i: number) => from_ns[i]! <= dur && (dur < to_ns[i]! || (i === last && dur <= to_ns[i]!));
  const textOf = (i: number) =>
    `${quantity(from_ns[i]!, "duration")} to ${quantity(to_ns[i]!, "duration")}: ${plural(count[i]!, "slice")}` +
    (isOwn(i) ? ", this one too" : "");
  return (
    <div ref={box} class="durations">
      {width > 0 && (
        <svg
          viewBox={`0 0 ${width} ${HEIGHT}`}
          height={HEIGHT}
          role="img"
          aria-label="How long slices of this name last"
        >
          {count.map((number, i) => (
            <g key={i} data-tip={textOf(i)}>
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
          <text x={0} y={HEIGHT - 3}>{quantity(from_ns[0], "duration")}</text>
          <text x={width} y={HEIGHT - 3} text-anchor="end">{quantity(to_ns[last], "duration")}</text>
        </svg>
      )}
    </div>
  );
}

function Numbers({ same: { mean_ns, min_ns, p50_ns, p95_ns, max_ns } }: { same: SameName }) {
  const numbers = { "Mean": mean_ns, "Shortest": min_ns, "Median": p50_ns, "95 % within": p95_ns, "Longest": max_ns };
  return (
    <dl class="numbers">
      {Object.entries(numbers).map(([title, value]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{quantity(value, "duration")}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Buttons that lead to the slices to look at. */
function JumpButtons({ same, slice }: { same: SameName; slice: number }) {
  const jump = useContext(JumpContext);
  const buttons = [["Fastest", same.fastest], ["Median", same.median], ["Slowest", same.slowest]] as const;
  return (
    <div class="buttons" role="group" aria-label="Go to the">
      {buttons.map(([title, number]) => (
        <button
          key={title}
          type="button"
          disabled={number === slice}
          onClick={() => jump(number)}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

interface Props {
  same: SameName;
  slice: number;
  dur: number;
  onFind: () => void;
}

/** Statistics of all slices with the name and the category of the selected one, and the ones to look at. */
export function SameNameStatistics({ same, slice, dur, onFind }: Props) {
  const { count, total_ns } = same;
  return (
    <section aria-label="Of the same name">
      <h3>Of the same name</h3>
      <p>
        <b>{decimal(count)}</b> {count === 1 ? "slice" : "slices"}, <b>{quantity(total_ns, "duration")}</b> in all
        {count > 1 && (
          <>
            {" · "}
            <button type="button" class="link" onClick={onFind}>Show all in the timeline</button>
          </>
        )}
      </p>
      {count > 1 && (
        <>
          {same.bins.count.length > 0 && <DurationHistogram bins={same.bins} dur={dur} />}
          <Numbers same={same} />
          <JumpButtons same={same} slice={slice} />
        </>
      )}
    </section>
  );
}
