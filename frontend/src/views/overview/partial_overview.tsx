import { Fragment, h } from "preact";
import type { PartialRead, Progress } from "../../api/types.ts";
import { decimal, percent, quantity, shorten } from "../../format/numbers.ts";
import { ProgressLine } from "../../ui/status.tsx";
import { capitalized } from "../../format/steps.ts";
import { Card, Facts } from "./card.tsx";
import { Tiles } from "./summary_tiles.tsx";

const NAME_LENGTH = 44;

/** Names with a number of events, and the time of those that have one. */
function Named({ rows, none }: { rows: { name: string; count: number; total_ns?: number }[]; none: string }) {
  if (!rows.length) return <p class="quiet">{none}</p>;
  return (
    <table class="average">
      <tbody>
        {rows.map(({ name, count, total_ns }) => (
          <tr key={name}>
            <th scope="row" data-tip={name}>{shorten(name, NAME_LENGTH)}</th>
            <td class="number">{count ? decimal(count) : "none yet"}</td>
            {total_ns !== undefined && <td class="number">{quantity(total_ns, "duration")}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Counts({ events, steps, step_ns, span_ns }: PartialRead) {
  const tiles = [
    ["Events so far", "Events in the part read so far", decimal(events)],
    ["Steps so far", "Steps whose host range has been read", steps ? decimal(steps) : "none yet"],
    [
      "Host time of a step so far",
      "Median host time of these steps, without the device's part",
      quantity(step_ns, "duration"),
    ],
    ["Time span so far", "From the first start to the last end read so far", quantity(span_ns, "duration")],
  ] as const;
  return <Tiles tiles={tiles.map(([title, doc, value]) => ({ title, doc, value, unit: "" }))} />;
}

/** The overview of a large recording while it is read: counts and sums only, since shares would be wrong. */
export function PartialOverview({ partial, progress }: { partial: PartialRead; progress: Progress | null }) {
  const part = `first ${percent(partial.fraction).replace(/\.\d/, "")} % of the file`;
  return (
    <>
      <div class="skeleton">
        <ProgressLine progress={progress} />
      </div>
      <section class="verdict partial" aria-label="Partial">
        <p class="sentence">Only the {part}: these numbers will change.</p>
        <p>
          Device events come last in the file, so how the time splits is known when all of it is read.
        </p>
      </section>
      <Counts {...partial} />
      <div class="pair">
        <Card title="Events by kind, so far" note={part}>
          <Named rows={partial.kinds.map(({ kind, events }) => ({ name: capitalized(kind), count: events }))} none="" />
        </Card>
        <Card title="Metadata of the file">
          {partial.facts.length
            ? <Facts facts={partial.facts.map(({ fact, value }) => [fact, value])} />
            : <p class="quiet">Nothing.</p>}
        </Card>
      </div>
      <div class="pair">
        <Card title="Longest operators so far" note="each with its callees, so they overlap">
          <Named rows={partial.operators} none="No operator read yet." />
        </Card>
        <Card title="Longest kernels so far" note={part}>
          <Named rows={partial.kernels} none="No kernel read yet." />
        </Card>
      </div>
    </>
  );
}
