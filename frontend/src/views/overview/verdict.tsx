import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isReport } from "../../api/report.ts";
import type { Table } from "../../api/types.ts";
import { useAnswer } from "../../app/answers.ts";
import { listing, openView, trace, viewTitle } from "../../app/router.ts";
import { percent, quantity } from "../../format/numbers.ts";
import { useWidth } from "../../ui/measure.ts";
import { prose } from "../../ui/prose.tsx";
import { ProgressLine } from "../../ui/status.tsx";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";
import type { Unit } from "./step_unit.ts";
import { adviceRows, colorOf, isAllWell, isUnknown, unbroken } from "./advice_rows.ts";

/** Two lines of a text; a button shows the rest of it. */
function TwoLines({ text }: { text: string }) {
  const box = useRef<HTMLParagraphElement>(null);
  const width = useWidth(box);
  const [isOpen, open] = useState(false);
  const [isCut, cut] = useState(false);
  useLayoutEffect(() => {
    const { scrollHeight, clientHeight } = box.current!;
    if (!isOpen) cut(scrollHeight > clientHeight + 1);
  }, [text, width, isOpen]);
  return (
    <div class="evidence">
      <p ref={box} class={isOpen ? "" : "clamped"}>{prose(text)}</p>
      {isCut && (
        <button type="button" class="link" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {isOpen ? "Less" : "More"}
        </button>
      )}
    </div>
  );
}

interface Shown {
  label: string;
  color: string;
  title: string;
  evidence: string;
  children: ComponentChildren;
}

/** A sentence, two lines of evidence, and on the right what it is worth. */
function Banner({ label, color, title, evidence, children }: Shown) {
  return (
    <section class="verdict" aria-label={label} style={{ borderColor: color }}>
      <div>
        <p class="sentence">{prose(title)}</p>
        <TwoLines text={evidence} />
      </div>
      <div class="worth">{children}</div>
    </section>
  );
}

/** What costs most, as one sentence, with its evidence and what fixing it would save at most. */
export function Verdict({ table, unit }: { table: Table; unit: Unit }) {
  const advice = adviceRows(table)[0];
  if (!advice) return null;
  const { saving, share, confidence, slices } = advice;
  return (
    <Banner label="Verdict" color={colorOf(advice)} title={advice.title} evidence={advice.evidence}>
      {saving !== null && (
        <b data-tip="Upper bound: after the fix, another cause may take its place">
          up to −{quantity(saving, "duration")}
        </b>
      )}
      {isUnknown(advice) && <b>can’t tell</b>}
      {!isUnknown(advice) && !isAllWell(advice) && (
        <small>
          {share !== null && `${percent(share)} % of ${unit.words} · `}
          confidence {confidence}
        </small>
      )}
      {slices && <ShowInTimeline slices={slices} words="Show in timeline" />}
    </Banner>
  );
}

const LONG_S = 3; // the verdict of a run that is ready sooner comes without a line of progress

/** Whether a rank is slow, from the run's summaries, before the selected trace is read. */
export function RunVerdict() {
  const { run } = trace.value;
  const workers = listing.value?.runs.find(({ name }) => name === run)?.workers.length ?? 0;
  return isReport || workers < 2 ? null : <RunAdvice />;
}

/** The run's verdict, where it knows something; "can't tell" is no headline. */
function RunAdvice() {
  const { answer } = useAnswer("run_advice");
  if (answer?.state === "loading" && (answer.progress?.seconds_left ?? 0) > LONG_S) {
    return (
      <section class="verdict" aria-label="Ranks">
        <ProgressLine progress={answer.progress} />
      </section>
    );
  }
  if (answer?.state !== "ready" || !answer.data.rule?.length) return null;
  const { data } = answer;
  const text = (name: string) => unbroken(String(data[name]![0] ?? ""));
  if (text("confidence") === "cannot_tell") return null;
  const [saving, share] = [data.saving_ns![0], data.saving_frac![0]];
  const others = data.rule!.length - 1;
  const more = others > 0 ? ` ${others} more ${others === 1 ? "rank is" : "ranks are"} slow.` : "";
  const hasSaving = typeof saving === "number" && typeof share === "number";
  return (
    <Banner
      label="Ranks"
      color={saving ? "var(--communication)" : "var(--kernel)"}
      title={text("title")}
      evidence={`${text("evidence")}${hasSaving ? ` ${text("action")}` : ""}${more}`}
    >
      {hasSaving && (
        <>
          <b data-tip="If the rank were as fast as the next one">up to −{quantity(saving, "duration")}</b>
          <small>{percent(share)} % of each step · confidence {text("confidence")}</small>
        </>
      )}
      <button type="button" class="link" onClick={() => openView(text("view"), "")}>
        {viewTitle(text("view"))} <span aria-hidden="true">→</span>
      </button>
    </Banner>
  );
}
