import { isReport } from "../../api/report.ts";
import type { RowSlices } from "../../api/row_slices.ts";
import type { Table } from "../../api/types.ts";
import { type ShownAnswer, useAnswer } from "../../app/answers.ts";
import { listing, openView, slicesIn, trace, viewTitle } from "../../app/router.ts";
import { percent, quantity } from "../../format/numbers.ts";
import { prose } from "../../ui/prose.tsx";
import { AnswerView, ProgressLine } from "../../ui/status.tsx";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";

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

interface Advice {
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

const colorOf = ({ rule, confidence }: Advice) =>
  confidence === CANNOT_TELL ? "var(--warning)" : COLORS[rule] ?? "var(--runtime)";

/** Keeps numbers and their units on one line. */
export const unbroken = (text: string) => text.replace(/(\d) (?=%|[nµm]?s\b|[KMGT]i?B\b)/g, "$1\u00a0");

function adviceRows({ data, view }: Table): Advice[] {
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

/** The unit of a saving: each step, or the recording if no steps were marked. */
const per = (isWhole: boolean) => (isWhole ? "" : " per step");

function Saving({ advice: { saving, share }, isWhole }: { advice: Advice; isWhole: boolean }) {
  if (saving === null) return null;
  return (
    <>
      {" "}Fixing it would save at most <b>{quantity(saving, "duration")}</b>
      {per(isWhole)} ({percent(share)} %).
    </>
  );
}

const InTimeline = ({ advice: { slices } }: { advice: Advice }) => slices && <ShowInTimeline slices={slices} />;

/** The largest problem as one sentence, its evidence, and what fixing it would save. */
export function Verdict({ shown, isWhole }: { shown: ShownAnswer; isWhole: boolean }) {
  return (
    <AnswerView shown={shown} title="Advice">
      {(table) => {
        const advice = adviceRows(table)[0];
        if (!advice) return null;
        return (
          <section
            class="verdict"
            aria-label="Verdict"
            style={{ borderColor: colorOf(advice) }}
          >
            <p class="sentence">{prose(advice.title)}</p>
            <p>
              {prose(advice.evidence)}
              <Saving advice={advice} isWhole={isWhole} /> <InTimeline advice={advice} />
            </p>
          </section>
        );
      }}
    </AnswerView>
  );
}

/** Whether it says that nothing needs a fix; without enough data, that isn't known. */
const isAllWell = ({ rule, confidence }: Advice) => rule === NOTHING_TO_FIX && confidence !== CANNOT_TELL;

function Worth({ advice }: { advice: Advice }) {
  const { saving, share, confidence } = advice;
  if (isAllWell(advice)) return <b class="quiet">nothing to fix</b>;
  if (confidence === CANNOT_TELL) return <b>can’t tell</b>;
  if (saving === null) return <b class="quiet">saving not estimated</b>;
  return (
    <>
      <b data-tip="Upper bound: after the fix, another cause may take its place">
        up to −{quantity(saving, "duration")}
      </b>
      <small>
        {percent(share)} %, confidence {confidence}
      </small>
    </>
  );
}

/** All advice with actions, the largest part of the step first; the first one's sentence is in the verdict. */
export function AdviceList({ data }: { data: Table }) {
  return (
    <ul class="advice">
      {adviceRows(data).map((advice, i) => {
        const needsAction = !isAllWell(advice);
        if (!needsAction && i === 0) {
          return <li key={advice.rule} class="all-well">This recording shows nothing to fix.</li>;
        }
        return (
          <li key={advice.rule}>
            <div class="worth">
              <Worth advice={advice} />
            </div>
            <div>
              {prose(needsAction ? advice.action : advice.title)}
              <p>
                {needsAction && i > 0 && <>{prose(advice.title)}</>}
                {prose(i > 0 ? advice.evidence : advice.title)} {i > 0 && <InTimeline advice={advice} />}
              </p>
            </div>
            <button type="button" class="link" onClick={() => openView(advice.view, advice.filter)}>
              {viewTitle(advice.view)}
              <span aria-hidden="true">→</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

/** Whether a rank is slow, from the run's summaries, before the selected trace is read. */
export function RunVerdict() {
  const { run } = trace.value;
  const workers = listing.value?.runs.find(({ name }) => name === run)?.workers.length ?? 0;
  return isReport || workers < 2 ? null : <RunAdvice />;
}

function RunAdvice() {
  const { answer } = useAnswer("run_advice");
  if (answer?.state === "loading") {
    return (
      <section class="verdict" aria-label="Ranks">
        <ProgressLine progress={answer.progress} />
      </section>
    );
  }
  if (answer?.state !== "ready" || !answer.data.rule?.length) return null;
  const { data } = answer;
  const text = (name: string) => unbroken(String(data[name]![0] ?? ""));
  const [saving, share] = [data.saving_ns![0], data.saving_frac![0]];
  const others = data.rule!.length - 1;
  return (
    <section
      class="verdict"
      aria-label="Ranks"
      style={{ borderColor: saving ? "var(--communication)" : "var(--kernel)" }}
    >
      <p class="sentence">{prose(text("title"))}</p>
      <p>
        {prose(text("evidence"))}
        {typeof saving === "number" && typeof share === "number" && (
          <>
            {" "}If it were as fast as the next rank, each step would save <b>{quantity(saving, "duration")}</b>{" "}
            ({percent(share)} %). {prose(text("action"))}
          </>
        )} {others > 0 && `${others} more ${others === 1 ? "rank is" : "ranks are"} slow. `}
        <button type="button" class="link" onClick={() => openView(text("view"), "")}>
          {viewTitle(text("view"))} <span aria-hidden="true">→</span>
        </button>
      </p>
    </section>
  );
}
