import { h } from "preact";
import type { Summary } from "../../api/types.ts";
import { trace, workersOf } from "../../app/router.ts";
import { percent, quantity } from "../../format/numbers.ts";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";
import { Banner, Sentence } from "../sentence.tsx";
import type { Unit } from "./step_unit.ts";
import { adviceRows, colorOf, isAllWell, isUnknown } from "./advice_rows.ts";

/** What costs most, as one sentence, with its evidence and what fixing it would save at most. */
export function Verdict({ summary, unit }: { summary: Summary; unit: Unit }) {
  const advice = adviceRows(summary)[0];
  if (!advice) return null;
  const { saving, share, confidence, slices } = advice;
  return (
    <Banner label="Verdict" color={colorOf(advice)} title={advice.title} evidence={advice.evidence}>
      {saving !== null && (
        <b data-tip="What this cause takes at most; after the fix, another one may take its place">
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

/** Whether a rank is slow, from the run's summaries, before the selected trace is read. */
export const RunVerdict = () => workersOf(trace.value.run).length < 2 ? null : <Sentence view="run_advice" />;
