import { h } from "preact";
import type { Claim, Summary, Table } from "../../api/types.ts";
import { type ShownSummary, useAnswerIf } from "../../app/answers.ts";
import { trace, workersOf } from "../../app/router.ts";
import { percent, quantity, type Value } from "../../format/numbers.ts";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";
import { Comparing } from "../../ui/status.tsx";
import { Banner, FirstRow } from "../sentence.tsx";
import type { Unit } from "./step_unit.ts";
import { adviceRows, colorOf, isAllWell, isUnknown } from "./advice_rows.ts";

/** What costs most, as one sentence, with its evidence and what fixing it would save at most. */
export function Verdict({ summary, unit, isComparing }: { summary: Summary; unit: Unit; isComparing: boolean }) {
  const advice = adviceRows(summary)[0];
  if (!advice) return null;
  const { saving, share, range, confidence, slices } = advice;
  return (
    <Banner label="Verdict" color={colorOf(advice)} title={advice.title} evidence={advice.evidence}>
      {saving !== null && (
        <b data-tip="What this cause takes at most; after the fix, another one may take its place">
          up to {range && "about "}−{quantity(saving, "duration")}
        </b>
      )}
      {isUnknown(advice) && <b>can’t tell</b>}
      {!isUnknown(advice) && !isAllWell(advice) && (
        <small>
          {range && `${range} · `}
          {share !== null && `${percent(share)} % of ${unit.words} · `}
          confidence {confidence}
        </small>
      )}
      {slices && <ShowInTimeline slices={slices} words="Show in timeline" />}
      {isComparing && <Comparing />}
    </Banner>
  );
}

const OF_RUN = "run_advice";
const CLAIMED = ["title", "evidence", "action", "saving_ns", "saving_frac", "confidence", "view", "filter"] as const;

/** What the summary claims of the run, as rows of the view that it claims it by. */
function runClaims({ verdict, also }: Summary): Table {
  const claims = [verdict, ...also].filter(({ about }) => about === "run");
  const column = (valueOf: (claim: Claim) => Value) => claims.map(valueOf);
  const data = {
    rule: column(({ id }) => id),
    ...Object.fromEntries(CLAIMED.map((name) => [name, column((claim) => claim[name])])),
  };
  return { state: "ready", view: OF_RUN, columns: [], data };
}

/**
 * Whether a rank is slow: by the summary, as all else on the page; by the ranks alone before the trace is read.
 * While the summary lacks what they say, there is none: both change together.
 */
export function RunVerdict({ summary: { answer, isComparing } }: { summary: ShownSummary }) {
  const known = answer?.state === "ready" && answer.ranks ? answer : null;
  const hasRanks = known !== null || workersOf(trace.value.run).length > 1;
  const ofRun = useAnswerIf(hasRanks && answer !== null && !known, OF_RUN).answer;
  if (!hasRanks) return null;
  if (isComparing && ofRun?.state === "ready") return null;
  return <FirstRow view={OF_RUN} answer={known && ofRun?.state !== "loading" ? runClaims(known) : ofRun} />;
}
