import { Fragment, h } from "preact";
import { useRef } from "preact/hooks";
import type { PartialRead, Table } from "../../api/types.ts";
import { tableOf, useAnswer, useSummary } from "../../app/answers.ts";
import { foreignWriter, isFindingViews, missing, openView, trace, traceState, viewEntry } from "../../app/router.ts";
import { decimal, plural } from "../../format/numbers.ts";
import { idInWords } from "../../format/readable_names.ts";
import { deviceNoun } from "../../format/vendor_words.ts";
import { prose } from "../../ui/prose.tsx";
import { AnswerView } from "../../ui/status.tsx";
import { Sentence } from "../sentence.tsx";
import { Part } from "../view_page.tsx";
import { ActivityStrip } from "./activity_strip.tsx";
import { hasNoTime } from "./advice_rows.ts";
import { Breakdown } from "./breakdown.tsx";
import { Card, Facts } from "./card.tsx";
import { PartialOverview } from "./partial_overview.tsx";
import { type Unit, unitOf, withoutProfiler } from "./step_unit.ts";
import { SummaryTiles } from "./summary_tiles.tsx";
import { TopLists } from "./top_lists.tsx";
import { RunVerdict, Verdict } from "./verdict.tsx";
import { WhatToDo } from "./what_to_do.tsx";

const Environment = ({ data }: Table) => <Facts facts={data.fact!.map((fact, i) => [fact, data.value![i] ?? "–"])} />;

function Findings({ data }: Table) {
  if (!data.rule!.length) return <p>{viewEntry("health")?.hint}</p>;
  return (
    <ul class="findings">
      {data.rule!.map((rule, i) => (
        <li key={i}>
          <span class={`level ${data.level![i]}`}>{data.level![i]}</span>
          <div>
            {idInWords(String(rule))}
            {data.count![i] === 1 ? "" : ` × ${decimal(data.count![i] as number)}`}
            <p>{prose(String(data.consequence![i]))}</p>
          </div>
        </li>
      ))}
    </ul>
  );
}

/** Where the trace is from, and the health of its data. */
function Provenance() {
  const environment = useAnswer("environment");
  const health = useAnswer("health");
  return (
    <div class="pair">
      <Card title="Environment">
        <AnswerView shown={environment} title="Environment">{Environment}</AnswerView>
      </Card>
      <Card title="Trace health">
        <AnswerView shown={health} title="Trace health">{Findings}</AnswerView>
        <p>
          <button type="button" class="link" onClick={() => openView("health")}>Show all as a table</button>
        </p>
      </Card>
    </div>
  );
}

/** The partial overview of a trace that is being read; null if there is none yet. */
function usePartial(): PartialRead | null {
  const last = useRef<{ key: string; partial: PartialRead } | null>(null);
  const key = JSON.stringify(trace.value);
  const state = traceState.value;
  if (state?.state === "loading" && state.partial) last.current = { key, partial: state.partial };
  return last.current?.key === key ? last.current.partial : null;
}

function unitOfTable(steps: Table | null): Unit {
  const { step = [], is_complete = [], phase } = steps?.data ?? {};
  return unitOf(step as string[], is_complete as boolean[], phase);
}

/** The overview: what costs most, what ran when, where the steps go, what takes most time, and what to do. */
export function Overview() {
  const overview = useAnswer("overview");
  const summary = useSummary();
  const gpus = useAnswer("gpus");
  const memory = useAnswer("memory_devices");
  const steps = tableOf(useAnswer("steps"));
  const unit = unitOfTable(steps);
  const found = tableOf(summary), ofClaims = found?.usual_step_ns ? withoutProfiler(unit) : unit;
  const isForeign = Boolean(foreignWriter.value),
    isSnapshot = !isFindingViews.value && !("snapshot_summary" in missing.value);
  const partial = usePartial();
  const waiting = overview.answer ?? { state: "loading", progress: null };
  if (partial && waiting.state === "loading") {
    return (
      <>
        <RunVerdict summary={summary} />
        <PartialOverview partial={partial} progress={waiting.progress} />
      </>
    );
  }
  return (
    <>
      <RunVerdict summary={summary} />
      <AnswerView shown={overview} title="Overview">
        {(table) => (
          <>
            {isSnapshot ? <Sentence view="snapshot_summary" /> : (
              <AnswerView shown={summary} title="Advice">
                {(ready) => <Verdict summary={ready} unit={ofClaims} isComparing={summary.isComparing} />}
              </AnswerView>
            )}
            {isForeign && !("lanes" in missing.value) && <Part entry={viewEntry("lanes")!} />}
            {(!isForeign || gpus.answer?.state === "ready") && !(found && hasNoTime(found)) && (
              <>
                <ActivityStrip steps={steps} noun={deviceNoun()} />
                <div class="overview">
                  <SummaryTiles overview={table} gpus={gpus} memory={memory} unit={unit} />
                  <Breakdown overview={table} steps={steps} unit={unit} />
                  {!isForeign && <WhatToDo shown={summary} noun={ofClaims.noun} />}
                  <TopLists shown={summary} unit={unit} />
                </div>
              </>
            )}
            <Provenance />
          </>
        )}
      </AnswerView>
    </>
  );
}

const FACTS = ["World size", "Device", "torch", "CUDA"];

/** One line on where the trace is from: the facts that distinguish traces. */
export function useContext(): string {
  const { answer } = useAnswer("environment");
  const steps = tableOf(useAnswer("steps"));
  if (answer?.state !== "ready") return "";
  const fact = (name: string) => {
    const row = answer.data.fact!.indexOf(name);
    return row < 0 ? null : String(answer.data.value![row]);
  };
  const unit = unitOfTable(steps);
  const facts = FACTS.flatMap((name) => {
    const value = fact(name);
    if (!value) return [];
    if (name === "World size") return [plural(Number(value) || 1, "process").replace(/ss+s$/, "sses")];
    return [name === "Device" ? value : `${name} ${value}`];
  });
  const events = fact("Events");
  return [
    ...facts,
    foreignWriter.value && `written by ${foreignWriter.value}`,
    steps && !foreignWriter.value &&
    (unit.isWhole ? "steps not marked" : plural(steps.data.is_complete!.filter(Boolean).length, unit.one)),
    events && `${events} events`,
  ].filter(Boolean).join(" · ");
}
