import { Fragment, h } from "preact";
import type { Comparison, Table } from "../../api/types.ts";
import { type BarPart, Legend, StackedBar } from "../../charts/stacked_bar.tsx";
import { capitalized } from "../../format/steps.ts";
import { CATEGORIES } from "../../charts/step_categories.ts";
import { formatGrowth, formatSigned } from "../../table/comparison_columns.ts";
import { wordsFor } from "../../table/columns.ts";
import { addKernelLabels, readableName } from "../../format/readable_names.ts";
import { cell, quantity, scaleFor, unbroken } from "../../format/numbers.ts";
import { isFindingViews, missing, viewEntry } from "../../app/router.ts";
import { prose } from "../../ui/prose.tsx";
import { AnswerView, Failure } from "../../ui/status.tsx";
import { useViewComparison } from "../comparison.tsx";
import { Part, View } from "../view_page.tsx";
import { Card } from "./card.tsx";

interface Bar {
  side: "base" | "new";
  total: number;
  parts: BarPart[];
}

function barOf(data: Table["data"], side: "base" | "new"): Bar {
  const means = data[`${side}_mean_ns`]!;
  const of = (name: string) => Number(means[data.category!.indexOf(name)] ?? 0);
  return {
    side,
    total: of("Step"),
    parts: CATEGORIES.map((category) => ({ ...category, value: of(category.name) })).filter(({ value }) => value),
  };
}

/** One average step as a bar; both bars of the card have one scale. */
function StepBar({ bar: { side, total, parts }, longest }: { bar: Bar; longest: number }) {
  const text = parts.map(({ name, value }) => `${name} ${quantity(value, "duration")}`).join(", ");
  return (
    <>
      <dt>{capitalized(side)}</dt>
      <dd>
        <StackedBar
          parts={parts}
          whole={total}
          scale={longest}
          label={`${side}: ${quantity(total, "duration")}: ${text}`}
        />
      </dd>
      <dd class="number">{quantity(total, "duration")}</dd>
    </>
  );
}

function Overlay({ table }: { table: Comparison }) {
  if (!table.data.base_mean_ns) return null; // only shares can be compared
  const bars = [barOf(table.data, "base"), barOf(table.data, "new")];
  const longest = Math.max(1, ...bars.map(({ total }) => total));
  const present = CATEGORIES.filter(({ name }) => bars.some(({ parts }) => parts.some((part) => part.name === name)));
  return (
    <Card title="Average step, base and new" note="one scale; parts add up to the step" isPicture>
      <dl class="overlay">{bars.map((bar) => <StepBar key={bar.side} bar={bar} longest={longest} />)}</dl>
      <Legend parts={present} />
    </Card>
  );
}

/** What changed most, of any kind: times or shares, the largest change first, then facts of the environment. */
function ChangeRows({ columns, data }: Table) {
  if (!data.kind!.length) return <p>Nothing changed.</p>;
  const unit = data.delta_ns!.some((value) => value !== null) ? "ns" : "frac";
  const kind = unit === "ns" ? "duration" : "fraction";
  const scale = scaleFor(kind, [...data[`base_${unit}`]!, ...data[`new_${unit}`]!]);
  const side = (name: string, row: number) =>
    data[`${name}_value`]![row] ?? cell(data[`${name}_${unit}`]![row] ?? null, kind, scale);
  return (
    <table class="average changes">
      <thead>
        <tr>
          <th scope="col">Changed</th>
          <th scope="col">Kind</th>
          {["Base", "New", "Change"].map((name) => <th key={name} scope="col" class="number">{name} {scale.unit}</th>)}
          <th scope="col">Verdict</th>
        </tr>
      </thead>
      <tbody>
        {data.kind!.map((kind, row) => (
          <tr key={row} class={data.verdict![row] === "not certain" ? "quiet" : ""}>
            <th scope="row" data-tip={data.name![row]}>{readableName(String(data.name![row]))}</th>
            <td>{wordsFor(columns[0]!, kind)}</td>
            <td class="number">{side("base", row)}</td>
            <td class="number">{side("new", row)}</td>
            <td class="number">
              {data[`delta_${unit}`]![row] !== null && formatSigned(data[`delta_${unit}`]![row], scale)}
              {data.ratio![row] !== null && ` (${formatGrowth(data.ratio![row])})`}
            </td>
            <td>{data.verdict![row]}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Whether the shown recording is a memory snapshot alone, which has no steps to compare. */
const isOfSnapshot = () =>
  !isFindingViews.value && !("snapshot_summary" in missing.value) && "operators" in missing.value;

function Changed({ table }: { table: Comparison & { headline: string } }) {
  addKernelLabels(table.labels);
  if (isOfSnapshot()) return <p class="answer">{table.headline}</p>;
  return (
    <>
      <p class="answer">{prose(unbroken(table.headline))}</p>
      <ChangeRows {...table} />
    </>
  );
}

/** The overviews of two traces: what changed most, the average steps one above the other, and the table. */
export function ComparedOverview() {
  const overview = useViewComparison("overview");
  const changes = useViewComparison("changes");
  if (overview.answer?.state === "failed") return <Failure {...overview.answer} />;
  return (
    <div class="overlaid">
      <Card title="What changed most">
        <AnswerView shown={changes} title="What changed most">
          {(table) => <Changed table={table as Comparison & { headline: string }} />}
        </AnswerView>
      </Card>
      {isOfSnapshot() ? <Part entry={viewEntry("snapshot_alive")!} /> : (
        <>
          <AnswerView shown={overview} title="Overview">
            {(table) => <Overlay table={table as Comparison} />}
          </AnswerView>
          <View entry={viewEntry("overview")!} />
        </>
      )}
    </div>
  );
}
