/** The claims about a recording, and how the page shows them. */

import type { RowSlices } from "../../api/row_slices.ts";
import type { Summary } from "../../api/types.ts";
import { timeRange, unbroken, type Value } from "../../format/numbers.ts";
import { slicesIn } from "../../app/router.ts";

/** The rule that reports what is fine; it comes last, or alone if there is nothing to fix. */
const NOTHING_TO_FIX = "nothing_to_fix";

/** The confidence of what the recording doesn't show: it is never drawn like what is well. */
const CANNOT_TELL = "cannot_tell";

/** The color of a rule: that of its part of the step. */
const COLORS: Record<string, string> = {
  data_loading: "var(--dataloader)",
  worker_start: "var(--dataloader)",
  communication: "var(--communication)",
  gloo: "var(--communication)",
  copies: "var(--memcpy)",
  mixed_precision: "var(--kernel)",
  channels_last: "var(--kernel)",
  unfused_attention: "var(--kernel)",
  matmul_below_roof: "var(--kernel)",
  convolution_below_roof: "var(--kernel)",
  attention_below_roof: "var(--kernel)",
  elementwise_below_roof: "var(--kernel)",
  elementwise: "var(--kernel)",
  casts: "var(--kernel)",
  layout_changes: "var(--kernel)",
  small_kernels: "var(--kernel)",
  small_operators: "var(--cpu-exec)",
  [NOTHING_TO_FIX]: "var(--kernel)",
};

export interface Advice {
  rule: string;
  title: string;
  evidence: string;
  action: string;
  saving: number | null;
  share: number | null;
  /** The least and the most that it may save; empty if it isn't simulated. */
  range: string;
  confidence: string;
  view: string;
  filter: string;
  /** Where the timeline shows it. */
  slices: RowSlices | null;
}

export const isUnknown = ({ confidence }: Advice) => confidence === CANNOT_TELL;

/** Whether it says that nothing needs a fix; without enough data, that isn't known. */
export const isAllWell = (advice: Advice) => advice.rule === NOTHING_TO_FIX && !isUnknown(advice);

export const colorOf = (advice: Advice) =>
  isUnknown(advice) ? "var(--warning)" : COLORS[advice.rule] ?? "var(--runtime)";

/** Whether the recording is empty, or holds nothing that took time. */
export const hasNoTime = ({ verdict }: Summary) => verdict.id === "nothing_timed";

/** What was found about the recording, the verdict first. */
export const adviceRows = ({ verdict, also }: Summary): Advice[] =>
  [verdict, ...also].filter(({ about }) => about === "recording").map((claim) => {
    const { id: rule, saving_ns: saving, saving_frac: share, confidence, view, filter } = claim;
    const { saving_low_ns: low, saving_high_ns: high } = claim;
    const columns: Record<string, Value> = { rule, view, filter };
    return {
      rule,
      title: unbroken(claim.title),
      evidence: unbroken(claim.evidence),
      action: unbroken(claim.action),
      saving,
      share,
      range: low === null || high === null ? "" : timeRange(low, high),
      confidence,
      view,
      filter,
      slices: rule === NOTHING_TO_FIX ? null : slicesIn("advice", (name) => columns[name] ?? null),
    };
  });
