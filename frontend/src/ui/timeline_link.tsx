/** What leads from elsewhere to the timeline. */

import { h } from "preact";
import { isReport } from "../api/report.ts";
import type { RowSlices } from "../api/row_slices.ts";
import { openTimeline } from "../app/router.ts";

/** Opens the timeline on what a row is about. */
export function ShowInTimeline({ slices, words = "Show in the timeline" }: { slices: RowSlices; words?: string }) {
  if (isReport) return null;
  return (
    <button type="button" class="link" onClick={() => openTimeline(slices)}>
      {words} <span aria-hidden="true">→</span>
    </button>
  );
}
