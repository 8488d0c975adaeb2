/** Why a run hangs or ended, and the last minutes of its ranks. */

import { Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import type { PictureOf, Table } from "../api/types.ts";
import { openTab, openView, WHY, why, whyHint } from "../app/router.ts";
import type { TextColumn, Why } from "../app/why.ts";
import { Curves } from "../charts/curve_chart.tsx";
import { decimal, unbroken } from "../format/numbers.ts";
import { prepareTable } from "../table/columns.ts";
import { LinkTo } from "../ui/link.tsx";
import { prose } from "../ui/prose.tsx";
import { Notice, Skeleton } from "../ui/status.tsx";
import { Banner } from "./sentence.tsx";

const COLORS: Record<Why["outcome"], string> = {
  culprit: "var(--warning)",
  "cannot tell": "var(--warning)",
  "slow work": "var(--dataloader)",
  "stopped from outside": "var(--dataloader)",
  "nothing open": "var(--kernel)",
};

/** The sentence, first on pages about the run; none about a job that ended well or works. */
export function WhyBanner() {
  const answer = why.value;
  if (!answer || answer.outcome === "nothing open") return null;
  return (
    <Banner
      label={answer.title}
      color={COLORS[answer.outcome]}
      title={unbroken(answer.sentence)}
      evidence={unbroken(answer.evidence.join(" "))}
    >
      {openTab.value?.id !== WHY && <LinkTo open={() => openView(WHY)}>{answer.title}</LinkTo>}
    </Banner>
  );
}

/** A table of texts, small enough to be whole. */
const TextTable = ({ columns, label }: { columns: TextColumn[]; label: string }) => (
  <div class="texts">
    <table aria-label={label}>
      <thead>
        <tr>{columns.map(({ name, is_number }) => <th key={name} class={is_number ? "number" : ""}>{name}</th>)}</tr>
      </thead>
      <tbody>
        {columns[0]?.cells.map((_, row) => (
          <tr key={row}>
            {columns.map(({ name, cells, is_number }) => (
              <td key={name} class={is_number ? "number" : ""}>{unbroken(cells[row]!)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

const TIME = "since", MARK = "began";

/** The curves as a table, whose picture they are. */
function tableOf({ times_ns, curves, marks }: NonNullable<Why["steps"]>): Table {
  const doc = "The slowest step around then.";
  const names = Object.keys(curves);
  return {
    state: "ready",
    view: WHY,
    columns: [
      { name: TIME, kind: "instant", doc: "Since the first of these minutes." },
      ...names.map((name) => ({ name, kind: "duration" as const, doc })),
      { name: MARK, kind: "text", doc: "Ranges of the program that began around then." },
    ],
    data: { [TIME]: times_ns, ...curves, [MARK]: marks },
  };
}

/** Step times over the last minutes, on one clock. */
function StepCurves({ steps }: { steps: NonNullable<Why["steps"]> }) {
  const entry = openTab.value!;
  const table = useMemo(() => tableOf(steps), [steps]);
  const ready = useMemo(() => prepareTable(table, entry), [table]);
  const picture: PictureOf<"lines"> = {
    kind: "lines",
    values: Object.keys(steps.curves),
    series: [],
    marks: MARK,
    is_stacked: false,
  };
  return <Curves {...{ picture, table, ready, entry }} />;
}

/** The last minutes of all ranks: live while the job runs. */
function LastMinutes({ answer: { steps, tables, is_running } }: { answer: Why }) {
  if (!steps) return null;
  const until = new Date((steps.begin_ns + steps.times_ns.at(-1)!) / 1e6);
  const count = tables[1]![0]?.cells.length ?? 0;
  return (
    <section>
      <h2>{is_running ? "Step times, live" : "Last minutes"}</h2>
      <p class="quiet">
        {decimal(count)} {count === 1 ? "rank" : "ranks"}, until {until.toISOString().slice(0, 19).replace("T", " ")}
        {" "}
        UTC
      </p>
      <StepCurves steps={steps} />
      <TextTable columns={tables[1]!} label="Last minutes" />
    </section>
  );
}

/** The page of a run that hangs or ended, or of a job that runs. */
export function WhyPage() {
  const answer = why.value;
  if (!answer) {
    return whyHint.value
      ? (
        <Notice title="This run has no trace">
          <p>{whyHint.value}</p>
        </Notice>
      )
      : <Skeleton />;
  }
  const { outcome, sentence, evidence, tables } = answer;
  return (
    <div class="why">
      <section class="verdict" aria-label={answer.title} style={{ borderColor: COLORS[outcome] }}>
        <p class="sentence">{prose(unbroken(sentence))}</p>
      </section>
      <TextTable columns={tables[0]!} label="Ranks" />
      {evidence.length > 0 && (
        <Fragment>
          <h2>Evidence</h2>
          <ul>{evidence.map((line) => <li key={line}>{prose(unbroken(line))}</li>)}</ul>
        </Fragment>
      )}
      <LastMinutes answer={answer} />
    </div>
  );
}
