import type { Comparison, Table } from "../../api/types.ts";
import { CATEGORIES } from "./step_categories.ts";
import { formatGrowth, formatSigned } from "../../table/comparison_columns.ts";
import { exact, percent, quantity, scaleFor } from "../../format/numbers.ts";
import { SavePicture } from "../../table/save.tsx";
import { viewEntry } from "../../app/router.ts";
import { AnswerView, Failure } from "../../ui/status.tsx";
import { useViewComparison } from "../comparison.tsx";
import { View } from "../view_page.tsx";

interface Bar {
  side: "base" | "new";
  total: number;
  parts: { name: string; color: string; value: number }[];
}

function barOf(data: Table["data"], side: "base" | "new"): Bar {
  const means = data[`${side}_mean_ns`]!;
  const of = (name: string) => Number(means[data.category!.indexOf(name)] ?? 0);
  return { side, total: of("Step"), parts: CATEGORIES.map(({ name, color }) => ({ name, color, value: of(name) })) };
}

/** One average step as a bar; both bars of the card have one scale. */
function StepBar({ bar, longest }: { bar: Bar; longest: number }) {
  const parts = bar.parts.filter(({ value }) => value > 0);
  const share = ({ value }: { value: number }) => `${percent(value / bar.total)} %`;
  const text = parts.map((part) => `${part.name} ${quantity(part.value, "duration")}`).join(", ");
  return (
    <>
      <dt>{bar.side === "base" ? "Base" : "New"}</dt>
      <dd>
        <div class="stacked" role="img" aria-label={`${bar.side}: ${quantity(bar.total, "duration")}: ${text}`}>
          {parts.map((part) => (
            <i
              key={part.name}
              style={{ background: part.color, width: `${(100 * part.value) / longest}%` }}
              data-tip={`${part.name}: ${exact(part.value, "duration")} · ${share(part)}`}
            />
          ))}
        </div>
      </dd>
      <dd class="number">{quantity(bar.total, "duration")}</dd>
    </>
  );
}

const VERDICTS: Record<string, string> = {
  real: "more than the variation between steps",
  noise: "within the variation between steps: noise",
  same: "no difference",
  unknown: "with fewer than two steps, noise can't be estimated",
};

function verdictLine({ data }: Comparison): string {
  const row = data.category!.indexOf("Step");
  const delta = data.delta_mean_ns![row];
  if (typeof delta !== "number") return "The average steps can't be compared.";
  const scale = scaleFor("duration", [delta]);
  const change = `${formatSigned(delta, scale)} ${scale.unit} (${formatGrowth(data.mean_ns_ratio![row])})`;
  return `The average step: ${change}, ${VERDICTS[String(data.mean_ns_verdict![row])]}.`;
}

function Overlay({ table }: { table: Comparison }) {
  const bars = [barOf(table.data, "base"), barOf(table.data, "new")];
  const longest = Math.max(1, ...bars.map(({ total }) => total));
  const present = CATEGORIES.filter(({ name }) =>
    bars.some(({ parts }) => parts.some((part) => part.name === name && part.value))
  );
  return (
    <section class="card">
      <header>
        <h2>Average step, base and new</h2>
        <span>one scale; parts add up to the step</span>
        <SavePicture title="Average step, base and new" />
      </header>
      <p>{verdictLine(table)}</p>
      <dl class="overlay">{bars.map((bar) => <StepBar key={bar.side} bar={bar} longest={longest} />)}</dl>
      <ul class="legend">
        {present.map(({ name, color }) => (
          <li key={name}>
            <i class="swatch" style={{ background: color }} />
            {name}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** What the two machines and recordings don't have in common. */
function Differences({ data }: Table) {
  const rows = data.fact!.map((_, row) => row).filter((row) => data.value_verdict![row] === "changed");
  if (!rows.length) return <p>The recorded environments don't differ.</p>;
  return (
    <table class="average">
      <thead>
        <tr>
          <th scope="col">Fact</th>
          <th scope="col">Base</th>
          <th scope="col">New</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row}>
            <th scope="row">{data.fact![row]}</th>
            <td>{data.base_value![row] ?? "–"}</td>
            <td>{data.new_value![row] ?? "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The overviews of two traces: the average steps one above the other, what differs around them, and the table. */
export function ComparedOverview() {
  const overview = useViewComparison("overview");
  const environment = useViewComparison("environment");
  if (overview.answer?.state === "failed") return <Failure {...overview.answer} />;
  return (
    <div class="overlaid">
      <AnswerView shown={overview} title="Overview">{(table) => <Overlay table={table as Comparison} />}</AnswerView>
      <section class="card">
        <header>
          <h2>Environment differences</h2>
        </header>
        <AnswerView shown={environment} title="Environment">{Differences}</AnswerView>
      </section>
      <View entry={viewEntry("overview")!} />
    </div>
  );
}
