import type { Comparison, Table } from "../api.ts";
import { CATEGORIES } from "../categories.ts";
import { growth, signed } from "../compared.ts";
import { exact, percent, quantity, scaleFor } from "../format.ts";
import { SavePicture } from "../widgets/save.tsx";
import { Answered, Failure } from "../widgets/waiting.tsx";
import { useCompared } from "./compare.tsx";
import { Generic } from "./generic.tsx";

interface Bar {
  side: "base" | "new";
  total: number;
  parts: { name: string; ink: string; value: number }[];
}

function barOf(data: Table["data"], side: "base" | "new"): Bar {
  const means = data[`${side}_mean_ns`]!;
  const of = (name: string) => Number(means[data.category!.indexOf(name)] ?? 0);
  return { side, total: of("Step"), parts: CATEGORIES.map(({ name, ink }) => ({ name, ink, value: of(name) })) };
}

/** One average step as a bar; both bars of the card have one scale. */
function StepBar({ bar, longest }: { bar: Bar; longest: number }) {
  const parts = bar.parts.filter(({ value }) => value > 0);
  const share = ({ value }: { value: number }) => `${percent(value / bar.total)} %`;
  const told = parts.map((part) => `${part.name} ${quantity(part.value, "duration")}`).join(", ");
  return (
    <>
      <dt>{bar.side === "base" ? "Base" : "New"}</dt>
      <dd>
        <div class="stacked" role="img" aria-label={`${bar.side}: ${quantity(bar.total, "duration")}: ${told}`}>
          {parts.map((part) => (
            <i
              key={part.name}
              style={{ background: part.ink, width: `${(100 * part.value) / longest}%` }}
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
  real: "more than the steps differ by among themselves",
  noise: "no more than the steps differ by among themselves: noise",
  same: "no difference",
  unknown: "whether that is noise can't be said: it takes two steps",
};

function verdictLine({ data }: Comparison): string {
  const row = data.category!.indexOf("Step");
  const delta = data.delta_mean_ns![row];
  if (typeof delta !== "number") return "The average steps can't be compared.";
  const scale = scaleFor("duration", [delta]);
  const change = `${signed(delta, scale)} ${scale.unit} (${growth(data.mean_ns_ratio![row])})`;
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
        {present.map(({ name, ink }) => (
          <li key={name}>
            <i class="swatch" style={{ background: ink }} />
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
  if (!rows.length) return <p>Nothing that is recorded of the environment differs.</p>;
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
  const overview = useCompared("overview");
  const environment = useCompared("environment");
  if (overview.answer?.state === "failed") return <Failure {...overview.answer} />;
  return (
    <div class="overlaid">
      <Answered shown={overview} title="Overview">{(table) => <Overlay table={table as Comparison} />}</Answered>
      <section class="card">
        <header>
          <h2>Environment: what differs</h2>
        </header>
        <Answered shown={environment} title="Environment">{Differences}</Answered>
      </section>
      <Generic />
    </div>
  );
}
