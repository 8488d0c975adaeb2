/** Idle time by cause, or what communication is exposed: a sentence, and a bar for each device that adds up to the time. */

import { h } from "preact";
import type { PictureOf } from "../api/types.ts";
import { exact, percent, type Scale, scaled, scaleFor, unbroken, type Value } from "../format/numbers.ts";
import type { DrawnTable } from "../table/rows.ts";
import { type BarPart, StackedBar, Swatch } from "./stacked_bar.tsx";
import { mostCauses, timePart, withLaunches } from "../format/time_parts.ts";
import { deviceNoun } from "../format/vendor_words.ts";
import { SavePicture } from "../table/save.tsx";
import { useTableScope } from "../table/table_scope.tsx";

const MOST_BARS = 8;
const NOTHING_IDLE = 0.005;
const MENTIONED = 0.05; // of the time
const OF_BUSY = new Set(["busy_ns", "exposed_communication_ns"]);

interface Part extends BarPart {
  id: string;
}

interface Bar {
  row: number;
  label: string;
  whole: number;
  busy: number;
  /** Only where what communication is exposed is the question. */
  communication?: number;
  /** Communication that no computation hides. */
  exposed: number;
  parts: Part[];
}

const idleOf = ({ whole, busy }: Bar) => whole - busy;

/** The unit of all times of a picture: up to 10 s in ms, since those next to a large one would be zeros in seconds. */
function unitFor(ns: number): Scale {
  const scale = scaleFor("duration", [ns]);
  return scale.unit === "s" && ns < 1e10 ? { unit: "ms", divisor: 1e6, decimals: 1 } : scale;
}

/** A time in the unit of others, with as many digits as are true of it. */
function inUnit(ns: number, others: Scale): string {
  const scale = scaleFor("duration", [ns], others);
  return `${scaled(ns, scale)} ${scale.unit}`;
}

function barsIn({ table: { data } }: DrawnTable, { whole, parts, only }: PictureOf<"stacked">): Bar[] {
  const [column, value] = only ?? [whole];
  const number = (name: string, row: number) => Number(data[name]?.[row] ?? 0);
  return (data[column] ?? []).flatMap((found: Value, row): Bar[] => {
    if (only && found !== value) return [];
    const step = data.step?.[row];
    const label = `${deviceNoun()} ${data.device?.[row]}${step === "all" ? "" : `, step ${step}`}`;
    const drawn = parts.map((name) => ({ id: name, ...timePart(name), value: number(name, row) }));
    const busy = drawn[0]!.value, exposed = number("exposed_communication_ns", row);
    if (!parts.includes("exposed_communication_ns") && exposed > 0) {
      const id = "exposed_communication_ns";
      drawn[0] = { ...drawn[0]!, name: "Busy otherwise", value: busy - exposed };
      drawn.splice(1, 0, { id, ...timePart(id), value: exposed });
    }
    return [{
      row,
      label,
      whole: number(whole, row),
      busy,
      ...(data.communication_ns && { communication: number("communication_ns", row) }),
      exposed,
      parts: drawn.filter(({ value }) => value > 0),
    }];
  });
}

/** The answer: how much of the communication costs time. */
function Exposure({ bar: { label, whole, busy, communication, exposed }, scale }: { bar: Bar; scale: Scale }) {
  return (
    <p class="answer">
      {unbroken(
        communication
          ? `${label}: computation hides ${percent(1 - exposed / communication)} % of communication. ${
            inUnit(exposed, scale)
          } of ` +
            `${inUnit(communication, scale)} is exposed, ${percent(exposed / whole)} % of the time.`
          : `${label} computes for ${percent(busy / whole)} % of the time. No communication ran on it; calls of the ` +
            "host don't count here.",
      )}
    </p>
  );
}

/** That nothing says why for a share of the time, as the end of a sentence. */
const unexplained = (share: number) =>
  share === 1 ? ", and nothing says why." : `. For ${percent(share)} % of that, nothing says why.`;

/** The answer: how long the device was idle, the causes of half of that, and that much of the rest isn't computation. */
function Sentence({ bar, scale }: { bar: Bar; scale: Scale }) {
  const idle = idleOf(bar), share = bar.exposed / bar.whole;
  const only = share >= MENTIONED ? `communication runs and nothing computes for ${percent(share)} %` : "";
  if (idle < NOTHING_IDLE * bar.whole) {
    return <p class="answer">{`${bar.label} was ${only ? `never idle, but ${only} of` : "busy all"} the time.`}</p>;
  }
  const causes = withLaunches(bar.parts.filter(({ id }) => !OF_BUSY.has(id)));
  const length = `for ${inUnit(idle, scale)} of ${inUnit(bar.whole, scale)} (${percent(idle / bar.whole)} %)`;
  const answer = causes[0]!.id === "not_shown_ns"
    ? `ran nothing that was recorded ${length}${unexplained(causes[0]!.value / idle)}`
    : `was idle ${length}. ${mostCauses(causes, idle)}.`;
  return <p class="answer">{unbroken(`${bar.label} ${answer}${only && ` Besides, ${only} of the time.`}`)}</p>;
}

function Row({ bar: { row, label, parts, whole }, isLabeled }: { bar: Bar; isLabeled: boolean }) {
  const scope = useTableScope();
  return (
    <div class="row">
      {isLabeled && <span>{label}</span>}
      <StackedBar
        parts={parts}
        whole={whole}
        label={`${label}: parts of its time. Open its row`}
        onOpen={() => scope.go({ rows: "1", row: String(row), open: "1" }, "push")}
      />
    </div>
  );
}

/** The sentence about the device that is idle most, the bars, and the parts of that device's bar in numbers. */
export function IdleBars({ picture, ...drawn }: DrawnTable & { picture: PictureOf<"stacked"> }) {
  const bars = barsIn(drawn, picture).sort((a, b) => idleOf(b) / b.whole - idleOf(a) / a.whole);
  const [first] = bars;
  if (!first) return null;
  const scale = unitFor(idleOf(first)), Headline = first.communication === undefined ? Sentence : Exposure;
  return (
    <figure class="card idle-bars">
      <div data-tip={drawn.table.columns.find(({ name }) => name === picture.whole)?.doc}>
        <Headline bar={first} scale={scale} />
      </div>
      {bars.slice(0, MOST_BARS).map((bar) => <Row key={bar.label} bar={bar} isLabeled={bars.length > 1} />)}
      <ul>
        {first.parts.map(({ name, color, value }) => (
          <li key={name}>
            <Swatch color={color} />
            {name} <b data-tip={exact(value, "duration")}>{inUnit(value, scale)}</b>
            <span class="quiet">{percent(value / first.whole)} %</span>
          </li>
        ))}
      </ul>
      <figcaption>
        {bars.length > 1 && `Numbers of ${first.label}`}
        {bars.length > MOST_BARS && `; the ${MOST_BARS} that are idle most of ${bars.length}`}
        <SavePicture title={drawn.entry.title} />
      </figcaption>
    </figure>
  );
}
