/** What leads from elsewhere to the timeline. */

import { h } from "preact";
import { isReport } from "../api/report.ts";
import type { RowSlices } from "../api/row_slices.ts";
import { openTimeline } from "../app/router.ts";
import { LinkTo } from "./link.tsx";

/** Opens the timeline on what a row is about. */
export function ShowInTimeline({ slices, words = "Show in the timeline" }: { slices: RowSlices; words?: string }) {
  return isReport ? null : <LinkTo open={() => openTimeline(slices)}>{words}</LinkTo>;
}
