/** Named ranges as pairs of bars on one scale: how long each takes on the host, and what the GPU did meanwhile. */

import { Fragment, h } from "preact";
import type { PictureOf } from "../api/types.ts";
import { decimal, quantity } from "../format/numbers.ts";
import { readableName } from "../format/readable_names.ts";
import type { DrawnTable } from "../table/rows.ts";
import { SavePicture } from "../table/save.tsx";
import { useTableScope } from "../table/table_scope.tsx";
import { cutName } from "../ui/measure.ts";
import { Legend, StackedBar } from "./stacked_bar.tsx";
import { timePart } from "../format/time_parts.ts";
import { deviceNoun } from "../format/vendor_words.ts";

const MOST = 8;
const NAME = 200; // pixels

/** The ranges that are first in the table; a click opens the row. */
export function RangeBars({ picture, ...drawn }: DrawnTable & { picture: PictureOf<"range_bars"> }) {
  const { table: { data }, rows: { rows } } = drawn, scope = useTableScope();
  const first = Array.from(rows.slice(0, MOST));
  const time = (name: string, row: number) => Number(data[name]?.[row] ?? 0);
  const [host, busy, other, idle] = [
    { ...timePart("host_annotation"), name: "Host" },
    { ...timePart("busy_ns"), name: `${deviceNoun()} busy` },
    { ...timePart("other"), name: `${deviceNoun()} busy with other work` },
    { ...timePart("idle_ns"), name: `${deviceNoun()} idle in between` },
  ];
  const onDevice = (row: number) => {
    const [own, none, span] = [picture.busy, picture.idle, picture.span].map((name) => time(name, row));
    return [{ ...busy!, value: own! }, { ...other!, value: span! - own! - none! }, { ...idle!, value: none! }];
  };
  const bars = first.map((row) => ({
    row,
    name: readableName(String(data[picture.name]![row])),
    lines: [
      [{ ...host!, value: time(picture.host, row) }],
      onDevice(row),
    ].map((parts) => ({ parts, whole: parts.reduce((sum, { value }) => sum + value, 0) })),
  }));
  const onDevices = [busy!, other!, idle!].filter((_, i) => bars.some(({ lines }) => lines[1]!.parts[i]!.value > 0));
  const longest = Math.max(1, ...bars.flatMap(({ lines }) => lines.map(({ whole }) => whole))) * 1.2;
  return (
    <figure class="card idle-bars ranges">
      {bars.map(({ row, name, lines }) => (
        <div key={row} class="row thin">
          <button
            type="button"
            class="plain"
            data-tip={name}
            onClick={() => scope.go({ row: String(row) }, "push")}
          >
            {cutName(name, NAME, () => bars.map(({ name }) => name).sort())}
          </button>
          <div>
            {lines.filter(({ whole }) => whole > 0).map(({ parts, whole }, line) => (
              <StackedBar
                key={line}
                parts={parts}
                whole={whole}
                scale={longest}
                label={`${name}: ${
                  parts.filter(({ value }) => value).map((part) => `${part.name} ${quantity(part.value, "duration")}`)
                    .join(", ")
                }`}
              >
                <span>{quantity(whole, "duration")}</span>
              </StackedBar>
            ))}
          </div>
        </div>
      ))}
      <figcaption>
        <Legend parts={[host!, ...onDevices]} />
        {rows.length > MOST && <>The first {MOST} of {decimal(rows.length)} rows</>}
        <SavePicture title={drawn.entry.title} />
      </figcaption>
    </figure>
  );
}
