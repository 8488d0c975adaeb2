/** Aligns all workers by the selected collective. */

import { useState } from "preact/hooks";
import { alignBy } from "./aligning.ts";
import { findOfCollective } from "./finds.ts";
import type { Hits, SliceFacts } from "./model.ts";
import { asked, type Source, sources } from "./state.ts";

/** Whether it ends on all ranks together: a device's part of a collective does; the host's only where no device does it. */
function endsTogether({ category, track }: SliceFacts, { meta: { tracks } }: Source): boolean {
  const isOfDevice = tracks[track]?.device !== null;
  return category === "Communication" && (isOfDevice || tracks.every(({ device }) => device === null));
}

export function AlignByCollective({ facts, source }: { facts: SliceFacts; source: Source }) {
  const [trouble, tell] = useState("");
  if (sources.value.length < 2 || !endsTogether(facts, source)) return null;
  const begin = async () => {
    const find = findOfCollective(facts);
    const query = { find: JSON.stringify(find), at_ns: String(facts.start_ns - 1), direction: "next" };
    const answer = await asked<Hits>(source, "timeline/find", query);
    if (answer.state === "failed") return tell(answer.message);
    alignBy({ by: "collective", find, before: answer.place ?? 0 });
  };
  return (
    <p class="align-by">
      <button
        type="button"
        data-tip="A collective ends on all ranks at about the same time: this puts its ends above each other"
        onClick={() => void begin()}
      >
        Align all workers by its end
      </button>
      {trouble && <span class="problem" role="alert">{trouble}</span>}
    </p>
  );
}
