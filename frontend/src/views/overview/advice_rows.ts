/** The rows of the view of advice, and how the page shows them. */

import type { RowSlices } from "../../api/row_slices.ts";
import type { Table } from "../../api/types.ts";
import { slicesIn } from "../../app/router.ts";
import { unbroken } from "../sentence.tsx";

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

export function adviceRows({ data, view }: Table): Advice[] {
  const text = (name: string, i: number) => unbroken(String(data[name]![i] ?? ""));
  return data.rule!.map((rule, i) => ({
    rule: String(rule),
    title: text("title", i),
    evidence: text("evidence", i),
    action: text("action", i),
    saving: data.saving_ns![i] as number | null,
    share: data.saving_frac![i] as number | null,
    confidence: text("confidence", i),
    view: text("view", i),
    filter: text("filter", i),
    slices: rule === NOTHING_TO_FIX ? null : slicesIn(view, (name) => data[name]?.[i] ?? null),
  }));
}
