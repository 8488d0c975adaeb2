/** Statistics of the counters of one worker in the selected area. */

import { h } from "preact";
import { useMemo } from "preact/hooks";
import type { AreaCounter, Counter } from "../../api/timeline_types.ts";
import type { Column, Failed, Loading, Table } from "../../api/types.ts";
import { useShown } from "../../app/answers.ts";
import type { Value } from "../../format/numbers.ts";
import { prepareTable, type Ready } from "../../table/columns.ts";
import { Scoped } from "../../table/table_scope.tsx";
import { AnswerView } from "../../ui/status.tsx";
import { counterText } from "../draw/counters.ts";
import type { Area } from "../model/url_codec.ts";
import type { Source } from "../state/sources.ts";
import { COUNTERS, useAreaAnswers } from "./area_query.ts";
import { AreaRows, entryOf } from "./area_rows.tsx";

const STATISTICS: [keyof AreaCounter, title: string, doc: string][] = [
  ["mean", "mean_while_recorded", "Its mean, without the time that isn’t in the recording."],
  ["least", "lowest", "Its lowest value in the area."],
  ["most", "highest", "Its highest value in the area."],
  ["first", "at_start", "Its value when the area begins."],
  ["last", "at_end", "Its value when the area ends."],
];

const COLUMNS: Column[] = [
  { name: "counter", kind: "text", doc: "What is counted." },
  { name: "of", kind: "text", doc: "The device, and the stream if it is of one." },
  ...STATISTICS.map(([, name, doc]): Column => ({ name, kind: "number", doc })),
];

const placeOf = ({ device, stream }: Counter) => stream === null ? device : `${device} · stream ${stream}`;

/** The counters that have a value in the area. */
function tableOf(counters: Counter[], all: AreaCounter[]): Table {
  const known = all.filter(({ mean }) => mean !== null), of = known.map(({ id }) => counters[id]!);
  const statistics = STATISTICS.map(([key, name]) => [name, known.map((one): Value => one[key])]);
  const data = { counter: of.map(({ name }) => name), of: of.map(placeOf), ...Object.fromEntries(statistics) };
  return { state: "ready", view: "area_counters", columns: COLUMNS, data };
}

/** Each counter with its own unit. */
function withUnits(ready: Ready, counters: Counter[], { data }: Table): Ready {
  const counterAt = (row: number) =>
    counters.find((one) => one.name === data.counter![row] && placeOf(one) === data.of![row])!;
  const columns = ready.columns.map((column) => ({
    ...column,
    ...(column.isNumeric && { shown: (row: number) => counterText(counterAt(row), Number(column.values[row])) }),
  }));
  return { ...ready, columns };
}

function Statistics({ table, counters, entry }: {
  table: Table;
  counters: Counter[];
  entry: ReturnType<typeof entryOf>;
}) {
  const ready = useMemo(() => withUnits(prepareTable(table, entry), counters, table), [table, entry]);
  if (!ready.count) return <p class="quiet">No counter has a value in this time.</p>;
  return <AreaRows table={table} ready={ready} entry={entry} findRow={() => null} />;
}

export function AreaCounters({ source, chosen }: { source: Source; chosen: Area }) {
  const id = `area_counters.${source.id}`, { counters } = source.meta;
  const entry = useMemo(() => ({ ...entryOf(id, null), key: ["counter", "of"] }), [id]);
  const answer = useAreaAnswers<Loading | Failed | { state: "ready"; counters: AreaCounter[] }>(
    [[source, chosen]],
    COUNTERS,
  )[0]!;
  const table = useMemo(() => (answer?.state === "ready" ? tableOf(counters, answer.counters) : null), [answer]);
  return (
    <Scoped entry={entry} label={`Counters, ${source.id}`}>
      <AnswerView shown={useShown(answer?.state === "ready" ? table : answer)} title="Counters">
        {(shown) => <Statistics table={shown} counters={counters} entry={entry} />}
      </AnswerView>
    </Scoped>
  );
}
