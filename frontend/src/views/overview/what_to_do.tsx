import { Fragment, h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isReport } from "../../api/report.ts";
import type { Summary, Table } from "../../api/types.ts";
import { type ShownAnswer, tableOf, useAnswer } from "../../app/answers.ts";
import { address, go, openView, viewTitle } from "../../app/router.ts";
import { PERCENT, percent, quantity, timeRange } from "../../format/numbers.ts";
import { formatSigned } from "../../table/comparison_columns.ts";
import { prose } from "../../ui/prose.tsx";
import { LinkTo } from "../../ui/link.tsx";
import { AnswerView } from "../../ui/status.tsx";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";
import { type Advice, adviceRows, isAllWell, isUnknown } from "./advice_rows.ts";
import { Card } from "./card.tsx";

const DELAY_MS = 120; // a dragged slider asks the server when it rests
const DEFAULT = 50;

/** Percent by rule, as in "data_loading:50,copies:20". */
const parse = (text: string): Record<string, number> =>
  Object.fromEntries(text.split(",").filter(Boolean).map((part) => [part.split(":")[0], Number(part.split(":")[1])]));
const print = (less: Record<string, number>): string =>
  Object.entries(less).filter(([, percent]) => percent > 0).map(([rule, percent]) => `${rule}:${percent}`).join(",");

/** The sliders' percentages: from the address, or the first rule's at 50 %. */
const chosenLess = (first: string) =>
  address.value.less === undefined ? { [first]: DEFAULT } : parse(address.value.less);

/** A new step time: "step 902 ms −25.6 %", and where what is saved lies in a range, this. */
function NewStep({ data, noun }: { data: Table["data"]; noun: string }) {
  const [step, share, low, high] = ["step_ns", "saved_frac", "saved_low_ns", "saved_high_ns"].map(
    (name) => data[name]![0] as number,
  ) as [number, number, number, number];
  return (
    <>
      {noun} {quantity(step, "duration")} {share != null && <b>{formatSigned(-share, PERCENT)} %</b>}
      {!!high && <small>saves {timeRange(low, high)}</small>}
    </>
  );
}

interface SliderProps {
  rule: string;
  target: string;
  first: string;
  noun: string;
}

/** "If it took 50 % less": the critical path laid out again, with all sliders at once. */
function Slider({ rule, target, first, noun }: SliderProps) {
  const less = chosenLess(first);
  const [value, setValue] = useState(less[rule] ?? 0);
  const together = print({ ...less, [rule]: value });
  useEffect(() => {
    if (value === (less[rule] ?? 0)) return;
    const timer = setTimeout(() => go({ less: together || "none:0" }), DELAY_MS);
    return () => clearTimeout(timer);
  }, [value]);
  const count = Object.values(less).filter((percent) => percent > 0).length;
  const shown = useAnswer("what_if", { less: print(less) });
  const table = tableOf(shown);
  const [path, saved] = ["path_ns", "saved_ns"].map((name) => Number(table?.data[name]?.[0])) as [number, number];
  return (
    <div class="slider">
      <label>
        <span>
          If {target} took <b>{value} %</b> less
        </span>
        <input
          type="range"
          min={0}
          max={100}
          step={5}
          value={value}
          aria-valuetext={`${value} % less`}
          onInput={({ currentTarget }) => setValue(Number(currentTarget.value))}
        />
      </label>
      <output
        class={table === shown.answer ? "" : "dimmed"}
        data-tip={count < 2 && saved < value / 200 * path ? "Other work then takes as long" : undefined}
      >
        {table ? <NewStep data={table.data} noun={noun} /> : "…"}
        {count > 1 && <small>all {count} sliders together</small>}
      </output>
    </div>
  );
}

/** The slider of a rule whose work could take less time; in a report, the step at 50 %. */
function WhatIf({ rule, first, noun }: { rule: string; first: string; noun: string }) {
  const { answer } = useAnswer("what_if");
  if (answer?.state !== "ready") return null;
  const row = answer.data.rule!.indexOf(rule);
  if (row < 0) return null;
  const target = String(answer.data.target![row]);
  if (!isReport) {
    return <Slider key={rule} rule={rule} target={target} first={first} noun={noun} />;
  }
  const data = Object.fromEntries(Object.entries(answer.data).map(([name, values]) => [name, [values[row]!]]));
  return (
    <p class="slider">
      If {target} took {DEFAULT} % less: <NewStep data={data} noun={noun} />
    </p>
  );
}

function Worth({ advice }: { advice: Advice }) {
  const { saving, range } = advice;
  if (isUnknown(advice)) return <b>can’t tell</b>;
  if (saving === null) return <b class="quiet">no estimate</b>;
  return <b data-tip={range || undefined}>−{quantity(saving, "duration")}</b>;
}

interface ItemProps {
  advice: Advice;
  isFirst: boolean;
  first: string;
  noun: string;
  isWide: boolean;
}

/** An action with what it saves; opened, its evidence and its slider. The first one's evidence is in the verdict. */
function Item({ advice, isFirst, first, noun, isWide }: ItemProps) {
  const { rule, share, confidence, slices, view, filter } = advice;
  const [isOpen, open] = useState(isFirst && isWide);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => open(currentTarget.open)}>
      <summary>
        <span class={isOpen ? "" : "clamped"}>{prose(advice.action)}</span>
        <span class="worth">
          <Worth advice={advice} />
        </span>
        <small>
          {!isUnknown(advice) && `${share === null ? "" : `${percent(share)} % · `}confidence ${confidence}`}
          {!isFirst && !isOpen && [isUnknown(advice) ? "" : " · ", prose(advice.title)]}
        </small>
      </summary>
      {isOpen && (
        <>
          {!isFirst && <p>{prose(`${advice.title} ${advice.evidence}`)}</p>}
          <WhatIf rule={rule} first={first} noun={noun} />
          <p class="links">
            <LinkTo open={() => openView(view, filter)}>{viewTitle(view)}</LinkTo>
            {!isFirst && slices && <ShowInTimeline slices={slices} words="Show in timeline" />}
          </p>
        </>
      )}
    </details>
  );
}

/** What was checked and is in order. */
function AllWell({ advice }: { advice: Advice }) {
  return (
    <details class="all-well">
      <summary>
        <span>{prose(advice.title)}</span>
      </summary>
      <p>{prose(advice.evidence)}</p>
    </details>
  );
}

const WIDE = globalThis.matchMedia?.("(min-width: 1200px)");

function List({ summary, noun }: { summary: Summary; noun: string }) {
  const rows = adviceRows(summary);
  const first = rows[0]?.rule ?? "";
  return (
    <ul class="advice">
      {rows.map((advice, i) => (
        <li key={advice.rule}>
          {isAllWell(advice)
            ? <AllWell advice={advice} />
            : <Item advice={advice} isFirst={i === 0} first={first} noun={noun} isWide={WIDE?.matches ?? true} />}
        </li>
      ))}
    </ul>
  );
}

/** All advice, the largest first, each with evidence to open; nothing where the verdict has said that all is well. */
export function WhatToDo({ shown, noun }: { shown: ShownAnswer<Summary>; noun: string }) {
  const rows = shown.answer?.state === "ready" ? adviceRows(shown.answer) : [];
  if (rows.length === 1 && isAllWell(rows[0]!)) return null;
  return (
    <div class="rail">
      <Card title="What to do" note="if all of it were gone; may overlap">
        <AnswerView shown={shown} title="Advice">{(summary) => <List summary={summary} noun={noun} />}</AnswerView>
      </Card>
    </div>
  );
}
