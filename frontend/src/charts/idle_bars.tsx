/** Idle time by cause, or what communication is exposed: a sentence, and a bar for each device that adds up to the time. */

import { h } from "preact";
import type { PictureOf } from "../api/types.ts";
import { deviceNoun } from "../app/answers.ts";
import { exact, percent, quantity, scaled, scaleFor, type Value } from "../format/numbers.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { useTableScope } from "../table/table_scope.ts";

const MOST_BARS = 8;
const NOTHING_IDLE = 0.005;

/** What the page calls each part, and its color. */
const PARTS: Record<string, [string, string]> = {
  busy_ns: ["Busy", "var(--kernel)"],
  late_data_loading_ns: ["Waiting for data", "var(--dataloader)"],
  late_synchronizing_ns: ["Host synchronizing", "color-mix(in srgb, var(--runtime) 50%, var(--surface))"],
  late_runtime_ns: ["Host in runtime calls", "var(--runtime)"],
  late_operator_ns: ["Host in operators", "var(--cpu-exec)"],
  late_annotation_ns: ["Host in annotations", "color-mix(in srgb, var(--cpu-exec) 55%, var(--surface))"],
  late_python_ns: ["Host in Python", "var(--curve-1)"],
  late_unrecorded_ns: ["Host, nothing recorded", "var(--other)"],
  launch_latency_ns: ["Launch latency", "color-mix(in srgb, var(--runtime) 25%, var(--surface))"],
  dependency_ns: ["Waiting for another stream", "var(--communication)"],
  blocked_copy_ns: ["Blocked in a copy or sync", "var(--memcpy)"],
  graph_launch_ns: ["Graph launch", "var(--memset)"],
  not_shown_ns: ["Not shown by the trace", "color-mix(in srgb, var(--warning) 34%, var(--surface))"],
  unexplained_ns: ["Unexplained", "var(--warning)"],
  computation_ns: ["Computation", "var(--kernel)"],
  exposed_communication_ns: ["Exposed communication", "var(--communication)"],
  exposed_copies_ns: ["Exposed copies", "var(--memcpy)"],
  idle_ns: ["Idle", "var(--other)"],
};

interface Bar {
  row: number;
  label: string;
  whole: number;
  busy: number;
  /** Communication, and how much of it no computation hides; only where that is the question. */
  communication?: number;
  exposed: number;
  parts: { title: string; color: string; value: number }[];
}

const idleOf = ({ whole, busy }: Bar) => whole - busy;
const timeOf = (ns: number) => quantity(ns, "duration");

function barsIn({ table: { data } }: DrawnTable, { whole, parts, only }: PictureOf<"stacked">): Bar[] {
  const [column, value] = only ?? [whole];
  const number = (name: string, row: number) => Number(data[name]?.[row] ?? 0);
  return (data[column] ?? []).flatMap((found: Value, row): Bar[] => {
    if (only && found !== value) return [];
    const step = data.step?.[row];
    const label = `${deviceNoun()} ${data.device?.[row]}${step === "all" ? "" : `, step ${step}`}`;
    const drawn = parts.map((name) => {
      const [title, color] = PARTS[name] ?? [name, "var(--other)"];
      return { title, color, value: number(name, row) };
    });
    return [{
      row,
      label,
      whole: number(whole, row),
      busy: drawn[0]!.value,
      ...(data.communication_ns && { communication: number("communication_ns", row) }),
      exposed: number("exposed_communication_ns", row),
      parts: drawn.filter(({ value }) => value > 0),
    }];
  });
}

/** The answer: how much of the communication costs time. */
function Exposure({ bar: { label, whole, busy, communication, exposed } }: { bar: Bar }) {
  return (
    <p class="answer">
      {communication
        ? `${label}: computation hides ${percent(1 - exposed / communication)} % of communication. ${
          timeOf(exposed)
        } of ` +
          `${timeOf(communication)} is exposed, ${percent(exposed / whole)} % of the time.`
        : `${label} computes for ${percent(busy / whole)} % of the time. No communication was recorded.`}
    </p>
  );
}

/** The answer: how long the device was idle, and the cause of most of that. */
function Sentence({ bar }: { bar: Bar }) {
  const idle = idleOf(bar), scale = scaleFor("duration", [idle]);
  if (idle < NOTHING_IDLE * bar.whole) return <p class="answer">{bar.label} was busy all the time.</p>;
  const [most] = bar.parts.filter(({ title }) => title !== "Busy").sort((a, b) => b.value - a.value);
  return (
    <p class="answer">
      {`${bar.label} was idle for ${scaled(idle, scale)} of ${scaled(bar.whole, scale)} ${scale.unit} `}
      {`(${percent(idle / bar.whole)} %). ${percent(most!.value / idle)} % of that: ${most!.title.toLowerCase()}.`}
    </p>
  );
}

function Row({ bar, isLabeled }: { bar: Bar; isLabeled: boolean }) {
  const scope = useTableScope();
  return (
    <div class="stack">
      {isLabeled && <span>{bar.label}</span>}
      <button
        type="button"
        class="plain"
        aria-label={`${bar.label}: parts of its time. Open its row`}
        onClick={() => scope.go({ rows: "1", row: String(bar.row), open: "1" }, "push")}
      >
        {bar.parts.map(({ title, color, value }) => (
          <i
            key={title}
            style={{ background: color, flexGrow: value }}
            data-tip={`${title}\n${exact(value, "duration")} · ${percent(value / bar.whole)} %`}
          />
        ))}
      </button>
    </div>
  );
}

/** The sentence about the device that is idle most, the bars, and the parts of that device's bar in numbers. */
export function IdleBars({ picture, ...drawn }: DrawnTable & { picture: PictureOf<"stacked"> }) {
  const bars = barsIn(drawn, picture).sort((a, b) => idleOf(b) / b.whole - idleOf(a) / a.whole);
  const [first] = bars;
  if (!first) return null;
  const scale = scaleFor("duration", [idleOf(first)]);
  return (
    <figure class="card idle-bars">
      {first.communication === undefined ? <Sentence bar={first} /> : <Exposure bar={first} />}
      {bars.slice(0, MOST_BARS).map((bar) => <Row key={bar.label} bar={bar} isLabeled={bars.length > 1} />)}
      <ul>
        {first.parts.map(({ title, color, value }) => (
          <li key={title}>
            <i class="swatch" style={{ background: color }} />
            {title} <b data-tip={exact(value, "duration")}>{scaled(value, scale)}</b>
            <span class="quiet">{percent(value / first.whole)} %</span>
          </li>
        ))}
      </ul>
      <figcaption>
        {scale.unit}
        {bars.length > 1 && ` of ${first.label}`}
        {bars.length > MOST_BARS && `; the ${MOST_BARS} that are idle most of ${bars.length}`}
        <SavePicture title={drawn.entry.title} />
      </figcaption>
    </figure>
  );
}
