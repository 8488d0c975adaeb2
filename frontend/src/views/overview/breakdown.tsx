import { Fragment, h } from "preact";
import type { Table } from "../../api/types.ts";
import { align, exact, PERCENT, percent, quantity, type Scale, scaled, scaleFor } from "../../format/numbers.ts";
import { ShowInTimeline } from "../../ui/timeline_link.tsx";
import { slicesIn } from "../../app/router.ts";
import { Card } from "./card.tsx";
import { partText, StackedBar, Swatch } from "../../charts/stacked_bar.tsx";
import { CATEGORIES, colorOf } from "../../charts/step_categories.ts";
import { capitalized, stepNoun } from "../../format/steps.ts";
import type { Unit } from "./step_unit.ts";
import { StepsChart } from "../../charts/steps_chart.tsx";

const MOST_BARS = 8; // steps that have a bar each; more are thin columns

type Numbers = (number | null)[];

interface Share {
  name: string;
  color: string;
  value: number;
  share: number;
  spread: number | null;
  range: string;
}

/** The categories that take any time, the largest first. */
function sharesOf({ data }: Table): Share[] {
  return data.category!.map((name, i) => ({
    name: String(name),
    color: colorOf(String(name)),
    value: (data.mean_ns as Numbers)[i] ?? 0,
    share: (data.share_frac as Numbers)[i] ?? 0,
    spread: (data.stdev_ns as Numbers)[i] ?? null,
    range: `${exact(data.min_ns![i], "duration")} to ${exact(data.max_ns![i], "duration")}`,
  })).filter(({ name, value }) => name !== "Step" && value > 0).sort((a, b) => b.value - a.value);
}

/** One step, or a recording without steps: one bar, and its numbers below. */
function OneBar({ shares }: { shares: Share[] }) {
  const whole = shares.reduce((sum, { value }) => sum + value, 0);
  const scale = scaleFor("duration", shares.map(({ value }) => value));
  const inOrder = CATEGORIES.flatMap(({ name }) => shares.filter((share) => share.name === name));
  return (
    <>
      <StackedBar parts={inOrder} whole={whole} label="Parts of the time" isNamed />
      <dl class="shares">
        {shares.map((part) => (
          <div key={part.name} data-tip={partText(part, whole)}>
            <dt>
              <Swatch color={part.color} />
              {part.name}
            </dt>
            <dd>{`${scaled(part.value, scale)} ${scale.unit}`}</dd>
            <dd class="quiet">{percent(part.share)} %</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

/** The average step as a table of its parts. */
function Average({ shares, unit }: { shares: Share[]; unit: Unit }) {
  const scale = scaleFor("duration", shares.map(({ value }) => value));
  return (
    <table class="average">
      <thead>
        <tr>
          <th scope="col">{unit.name}</th>
          <th scope="col" class="number">{scale.unit}</th>
          <th scope="col" class="number" data-tip={`Standard deviation over ${unit.counted}`}>±</th>
          <th scope="col" class="number">%</th>
        </tr>
      </thead>
      <tbody>
        {shares.map(({ name, color, value, share, spread, range }) => (
          <tr key={name}>
            <th scope="row">
              <Swatch color={color} />
              {name}
            </th>
            <td class="number" data-tip={`${exact(value, "duration")}\n${range}`}>
              {align(scaled(value, scale), scale)}
            </td>
            <td class="number quiet">{spread === null ? "–" : align(scaled(spread, scale), scale)}</td>
            <td class="number">{align(percent(share), PERCENT)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A bar of a step: its parts in the order of the categories, on the scale of the longest. */
function StepBar({ data, step, longest, scale }: { data: Table["data"]; step: number; longest: number; scale: Scale }) {
  const total = data.total_ns![step] as number;
  const parts = CATEGORIES.map(({ name, column, color }) => ({
    name,
    color,
    value: Number(data[column]?.[step] ?? 0),
  }));
  const name = `${capitalized(stepNoun(data.phase))} ${data.step![step]}${
    data.is_complete![step] ? "" : ", incomplete"
  }`;
  const text = [`${name}: ${quantity(total, "duration")}`].concat(
    parts.filter(({ value }) => value > 0).map(({ name, value }) =>
      `${name}: ${quantity(value, "duration")} · ${percent(value / total)} %`
    ),
  ).join("\n");
  const slices = slicesIn("steps", (column) => data[column]?.[step] ?? null);
  return (
    <li class={data.is_complete![step] ? "" : "cut"} data-tip={text}>
      <span>{slices ? <ShowInTimeline slices={slices} words={String(data.step![step])} /> : data.step![step]}</span>
      <StackedBar parts={parts} whole={total} scale={longest} label={text}>
        <span>{`${scaled(total, scale)} ${scale.unit}`}</span>
      </StackedBar>
    </li>
  );
}

function StepBars({ data }: { data: Table["data"] }) {
  const totals = data.total_ns as number[];
  const scale = scaleFor("duration", totals);
  const longest = Math.max(1, ...totals) * 1.25; // room for the number behind the longest bar
  return (
    <ul class="step-bars" aria-label={`Steps, in ${scale.unit}`}>
      {totals.map((_, step) => <StepBar key={step} data={data} step={step} longest={longest} scale={scale} />)}
    </ul>
  );
}

/** Where the time of the steps goes: one bar, a bar per step, or thin columns, each with the numbers of the average. */
export function Breakdown({ overview, steps, unit }: { overview: Table; steps: Table | null; unit: Unit }) {
  const shares = sharesOf(overview);
  const count = steps?.data.step?.length ?? 1;
  const cut = steps?.data.is_complete?.filter((is) => !is).length ?? 0;
  const none = shares.some(({ name }) => name === "Communication") ? "" : "no communication";
  const notes = [unit.counted, cut && count > 1 ? `${cut} incomplete` : "", none].filter(Boolean).join(", ");
  const whole = unit.counted ? `each ${unit.noun}` : unit.isWhole ? "the time" : unit.words;
  return (
    <Card title={`Where ${whole} goes`} note={notes} isPicture>
      {count < 2 || !steps ? <OneBar shares={shares} /> : (
        <div class="steps-and-average">
          {count <= MOST_BARS ? <StepBars data={steps.data} /> : <StepsChart data={steps.data} />}
          <Average shares={shares} unit={unit} />
        </div>
      )}
    </Card>
  );
}
