/** Bars of steps or phases whose parts are the rows of a table, in the colors of their causes. */

import { Fragment, h } from "preact";
import { isReport } from "../api/report.ts";
import type { PictureOf, Table } from "../api/types.ts";
import { tableOf, useAnswer } from "../app/answers.ts";
import { comparisonBase } from "../app/comparison_base.ts";
import { stepWord, viewEntry } from "../app/router.ts";
import { readableName } from "../format/readable_names.ts";
import { exact, percent, plural, quantity, scaled, scaleFor, timeRange } from "../format/numbers.ts";
import { capitalized, stepInWords } from "../format/steps.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { useTableScope } from "../table/table_scope.tsx";
import { Stops } from "../ui/choice.tsx";
import { type BarPart, StackedBar, Swatch } from "./stacked_bar.tsx";
import { timePart } from "../format/time_parts.ts";

type PictureOfParts = PictureOf<"part_bars">;

const ALL = "all";
const TINTS = [100, 80, 66, 54, 46]; // percent of the color, for the parts of one cause
const PALEST = 36;
const WAITS = ["between_kernels", "unexplained"]; // a row with such a cause has the name of what waited
const PHASES: Record<string, string> = { idle: "Iterations without a request", other: "Iterations of unknown phase" };

interface Piece extends BarPart {
  cause: string;
  row: number;
}

interface Bar {
  name: string;
  whole: number;
  pieces: Piece[];
}

/** The part that a row is; each cause has its color, and the parts of one cause its tints in the order of the rows. */
function pieceOf(data: Table["data"], picture: PictureOfParts, row: number, tints: Map<string, string[]>): Piece {
  const text = (column: string | null) => column === null ? "" : String(data[column]?.[row] ?? "");
  const cause = text(picture.part), name = text(picture.name), source = text(picture.source), part = timePart(cause);
  const count = Number(data[picture.count ?? ""]?.[row] ?? 1);
  const key = `${name} ${source}`;
  let ofCause = tints.get(cause) ?? [];
  if (!ofCause.includes(key)) tints.set(cause, ofCause = [...ofCause, key]);
  const isAlone = ofCause[0] === key, tint = name || isAlone ? TINTS[ofCause.indexOf(key)] ?? PALEST : PALEST;
  return {
    row,
    cause,
    name: `${name && WAITS.includes(cause) ? "before " : ""}${readableName(name)}` ||
      (isAlone ? part.name : plural(count, "other")),
    color: tint === 100 ? part.color : `color-mix(in srgb, ${part.color} ${tint}%, #fff)`,
    value: Number(data[picture.length]![row] ?? 0),
    notes: name ? [part.name, readableName(source)].filter(Boolean) : [],
  };
}

function barsIn({ table: { data } }: DrawnTable, picture: PictureOfParts): Bar[] {
  const bars = new Map<string, Bar>(), tints = new Map<string, string[]>();
  data[picture.bar]!.forEach((value, row) => {
    const name = String(value), bar = bars.get(name) ?? { name, whole: 0, pieces: [] };
    const piece = pieceOf(data, picture, row, tints);
    bar.whole += piece.value;
    bar.pieces.push(piece);
    bars.set(name, bar);
  });
  return [...bars.values()];
}

const USUAL = "50";
const FASTER = "faster"; // in the address: "kernel:75,copy:20"

/** The percentages of the sliders that were moved. */
const percentsIn = (text: string) =>
  new Map(text.split(",").filter(Boolean).map((of) => of.split(":") as [string, string]));

/** "If it took 50 % less", for one part of the bar: what a step would save; nothing for a wait, which has no saving. */
function PartSlider({ view, cause }: { view: string; cause: string }) {
  const scope = useTableScope(), percents = percentsIn(scope.get(FASTER)), less = percents.get(cause) ?? USUAL;
  const { choices } = viewEntry(view)!.parameters.find(({ name }) => name === "percent")!;
  const table = tableOf(useAnswer(view, less === USUAL ? {} : { percent: less }));
  const row = table?.data.part?.indexOf(cause) ?? -1;
  const saved = (name: string) => table?.data[name]?.[row] as number | null;
  const high = saved("saved_high_ns");
  const pick = (value: string) =>
    scope.go({ [FASTER]: [...percents.set(cause, value)].map((of) => of.join(":")).join(",") });
  return saved("saved_ns") === null ? null : (
    <>
      <Stops
        label={`If ${timePart(cause).name} took less time`}
        value={less}
        stops={choices.toSorted((a, b) => Number(a) - Number(b))}
        onPick={pick}
      />
      <output>
        {less} % less saves <b>{row < 0 ? "…" : `${percent(saved("saved_frac"))} %`}</b>
        <span class="quiet">
          {row < 0 ? "" : quantity(saved("saved_ns"), "duration")}
          {high != null && ` (${timeRange(saved("saved_low_ns")!, high)})`}
        </span>
      </output>
    </>
  );
}

const LEAST_COST = 0.02; // of a step, that recording takes and is worth a word

/** What the times of parts are of, and what their savings are of: a step may be shorter without the profiler. */
function Meaning({ view, whole }: { view: string; whole: number }) {
  const { saved_ns = [], saved_frac = [] } = tableOf(useAnswer(view))?.data ?? {};
  const noun = stepWord.value;
  const row = saved_frac.findIndex((share) => Number(share) > 0);
  const length = row < 0 ? whole : Number(saved_ns[row]) / Number(saved_frac[row]);
  const isShorter = length < (1 - LEAST_COST) * whole;
  return (
    <p class="quiet">
      Times: on the path of the {isShorter ? `recorded ${noun}` : noun}.
      {saved_ns.some((saved) => saved !== null) && (
        <>
          {" "}Savings: of {stepInWords(noun)}
          {isShorter && ` without the profiler (${quantity(length, "duration")})`}, if all such work took less time,
          also off the path.
        </>
      )}
    </p>
  );
}

/** A bar with names in it, and below it the time of each cause. */
function LargeBar({ bar: { pieces, whole }, title, whatIf }: { bar: Bar; title: string; whatIf: string | null }) {
  const scope = useTableScope();
  const units = scaleFor("duration", pieces.map(({ value }) => value));
  const causes = Map.groupBy(pieces, ({ cause }) => cause);
  return (
    <>
      <h2>
        {title} · {quantity(whole, "duration")}
      </h2>
      <StackedBar
        parts={pieces}
        whole={whole}
        units={units}
        label={`Parts of ${title}`}
        onPick={(row) => scope.go({ rows: "1", row: String(row), open: "1" }, "push")}
      />
      {whatIf && <Meaning view={whatIf} whole={whole} />}
      <ul class={whatIf ? "sliders" : ""}>
        {[...causes].map(([cause, of]) => {
          const { name, color } = timePart(cause), time = of.reduce((sum, { value }) => sum + value, 0);
          return (
            <li key={cause}>
              <Swatch color={color} />
              {name}{" "}
              <b data-tip={exact(time, "duration")}>
                {whatIf ? quantity(time, "duration") : `${scaled(time, units)} ${units.unit}`}
              </b>
              <span class="quiet">{percent(time / whole)} %</span>
              {whatIf && <PartSlider view={whatIf} cause={cause} />}
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** Bars of steps are on one scale below the one of all steps; others are alike. */
export function PartBars({ picture, ...drawn }: DrawnTable & { picture: PictureOfParts }) {
  const noun = stepWord.value, bars = barsIn(drawn, picture);
  const isOfSteps = picture.is_of_steps, large = isOfSteps ? bars.slice(0, 1) : bars;
  const small = bars.slice(large.length), whatIf = isReport || comparisonBase.value ? null : picture.what_if;
  const longest = Math.max(1, ...small.map(({ whole }) => whole)) * 1.12; // room for the number behind the longest bar
  const titleOf = ({ name }: Bar) => {
    if (!isOfSteps) return PHASES[name] ?? capitalized(name);
    if (name !== ALL) return `${capitalized(noun)} ${name}`;
    return small.length ? `Average ${noun}` : "The recording";
  };
  return (
    <figure class="card idle-bars">
      {large.map((bar) => <LargeBar key={bar.name} bar={bar} title={titleOf(bar)} whatIf={whatIf} />)}
      {small.map((bar) => (
        <div key={bar.name} class="row thin">
          <span>{bar.name}</span>
          <StackedBar parts={bar.pieces} whole={bar.whole} scale={longest} label={`Parts of ${titleOf(bar)}`}>
            <span>{quantity(bar.whole, "duration")}</span>
          </StackedBar>
        </div>
      ))}
      <figcaption>
        {isOfSteps ? "What each instant waited for" : "Mean time of an iteration"}
        <SavePicture title={drawn.entry.title} />
      </figcaption>
    </figure>
  );
}
