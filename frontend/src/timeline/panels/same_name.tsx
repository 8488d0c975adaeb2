/** The selected slice among all slices of its name. */

import { Fragment, h } from "preact";
import { useContext } from "preact/hooks";
import { decimal, quantity } from "../../format/numbers.ts";
import type { SliceFacts } from "../../api/timeline_types.ts";
import { Part } from "../../ui/details.tsx";
import { Durations } from "../../ui/durations.tsx";
import { JumpContext } from "./slice_link.tsx";

type SameName = SliceFacts["same_name"];

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
    <Part title="Of the same name">
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
          <Durations stats={same} dur={dur} />
          <JumpButtons same={same} slice={slice} />
        </>
      )}
    </Part>
  );
}
