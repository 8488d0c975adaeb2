import { percent, quantity } from "../format.ts";
import { isReport } from "../report.ts";
import { listing, openRows, trace, useAnswer, viewTitle } from "../state.ts";
import { prose } from "../widgets/prose.tsx";
import { ProgressLine } from "../widgets/waiting.tsx";
import { unbroken } from "./advice.tsx";

/** Whether a rank is slow, in a run of several: said from summaries, before the selected trace is read. */
export function RunVerdict() {
  const { run } = trace.value;
  const workers = listing.value?.runs.find(({ name }) => name === run)?.workers.length ?? 0;
  return isReport || workers < 2 ? null : <Said />;
}

function Said() {
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
            {" "}As fast as the next one, it would save <b>{quantity(saving, "duration")}</b> per step ({percent(share)}
            {" "}
            %). {prose(text("action"))}
          </>
        )} {others > 0 && `${others} more ${others === 1 ? "rank is" : "ranks are"} slow. `}
        <button type="button" class="link" onClick={() => openRows(text("view"), "")}>
          {viewTitle(text("view"))} <span aria-hidden="true">→</span>
        </button>
      </p>
    </section>
  );
}
