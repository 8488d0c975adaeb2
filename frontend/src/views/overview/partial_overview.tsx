import type { NamedTime, PartialRead, Progress } from "../../api/types.ts";
import { decimal, exact, percent, quantity, scaled, scaleFor, shorten } from "../../format/numbers.ts";
import { ProgressLine } from "../../ui/status.tsx";
import { Card } from "./card.tsx";

const NAME_LENGTH = 44;

function Kinds({ kinds }: PartialRead) {
  const most = Math.max(...kinds.map(({ events }) => events));
  return (
    <table class="average">
      <tbody>
        {kinds.map(({ kind, events }) => (
          <tr key={kind}>
            <th scope="row">{kind.charAt(0).toUpperCase() + kind.slice(1)}</th>
            <td class={`number ${events ? "" : "quiet"}`}>{events ? decimal(events) : "none yet"}</td>
            <td class="bar">{events > 0 && <i class="counted" style={{ width: `${100 * events / most}%` }} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Longest({ rows, none }: { rows: NamedTime[]; none: string }) {
  if (!rows.length) return <p class="quiet">{none}</p>;
  const scale = scaleFor("duration", rows.map(({ total_ns }) => total_ns));
  return (
    <table class="average">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col" class="number">Events</th>
          <th scope="col" class="number">{scale.unit}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ name, count, total_ns }) => (
          <tr key={name}>
            <th scope="row" data-tip={name.length > NAME_LENGTH ? name : undefined}>{shorten(name, NAME_LENGTH)}</th>
            <td class="number">{decimal(count)}</td>
            <td class="number" data-tip={exact(total_ns, "duration")}>{scaled(total_ns, scale)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Counts({ events, steps, step_ns, span_ns }: PartialRead) {
  const tiles = [
    { title: "Events so far", doc: "Events in the part read so far", value: decimal(events) },
    {
      title: "Steps so far",
      doc: "Steps whose host range has been read",
      value: steps ? decimal(steps) : "none yet",
    },
    {
      title: "Host time of a step so far",
      doc: "Median host time of these steps, without the device's part",
      value: step_ns === null ? "–" : quantity(step_ns, "duration"),
    },
    {
      title: "Time span so far",
      doc: "From the first start to the last end read so far",
      value: span_ns === null ? "–" : quantity(span_ns, "duration"),
    },
  ];
  return (
    <dl class="tiles">
      {tiles.map(({ title, doc, value }) => (
        <div key={title} class="card" data-tip={doc}>
          <dt>{title}</dt>
          <dd>
            <b>{value}</b>
          </dd>
        </div>
      ))}
    </dl>
  );
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
          PyTorch writes host events first and device events last, so a part of the file can't show how the time splits.
          The overview appears when the whole file is read.
        </p>
      </section>
      <Counts {...partial} />
      <div class="pair">
        <Card title="Events by kind, so far" note={part}>
          <Kinds {...partial} />
        </Card>
        <Card title="Metadata of the file">
          {partial.facts.length
            ? (
              <dl class="facts">
                {partial.facts.map(({ fact, value }) => [
                  <dt key={`fact ${fact}`}>{fact}</dt>,
                  <dd key={`value ${fact}`}>{value}</dd>,
                ])}
              </dl>
            )
            : <p class="quiet">Nothing.</p>}
        </Card>
      </div>
      <div class="pair">
        <Card title="Longest operators so far" note="each with its callees, so they overlap">
          <Longest rows={partial.operators} none="No operator read yet." />
        </Card>
        <Card title="Longest kernels so far" note={part}>
          <Longest rows={partial.kernels} none="No kernel read yet." />
        </Card>
      </div>
    </>
  );
}
