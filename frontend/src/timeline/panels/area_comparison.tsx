/** What ran in the selected area compared with what ran in a bookmark, by name. */

import { h } from "preact";
import { useMemo } from "preact/hooks";
import type { Failed, Loading, Table } from "../../api/types.ts";
import { useShown } from "../../app/answers.ts";
import { Scoped } from "../../table/table_scope.tsx";
import { comparedTable, readyAreas } from "../model/area_comparison.ts";
import { duration } from "../model/times.ts";
import { type Area, type Bookmark, isSameArea } from "../model/url_codec.ts";
import { type AreaAnswer, useAreaAnswers, workersOf } from "./area_query.ts";
import { AreaRows, entryOf, findName } from "./area_rows.tsx";
import { titleOf } from "../state/bookmarks.ts";
import { type Source, sourceOf } from "../state/sources.ts";
import { AnswerView } from "../../ui/status.tsx";

const ENTRY = entryOf("compared_areas", null); // they come by the size of their difference

const isOnSameTracks = (a: Area, b: Area) => isSameArea({ ...a, from: 0, to: 1 }, { ...b, from: 0, to: 1 });

/** How much longer the one is, and whether the two can be compared well. */
function Basis({ of, chosen }: { of: Bookmark; chosen: Area }) {
  const longer = Math.round(chosen.to - chosen.from - (of.to - of.from));
  const than = longer ? `${duration(Math.abs(longer))} ${longer > 0 ? "longer" : "shorter"} than` : "as long as";
  return (
    <p class="basis" role="note">
      The area is {than} the base, <b>{titleOf(of)}</b>. The largest differences of self time come first.
      {!isOnSameTracks(of, chosen) && " The two cover different tracks."}
    </p>
  );
}

type Answers = (AreaAnswer | null)[];
const isFailed = (answer: AreaAnswer | null): answer is Failed => answer?.state === "failed";
const isLoading = (answer: AreaAnswer | null): answer is Loading => answer?.state === "loading";
const isReady = (answer: AreaAnswer | null): answer is Omit<Table, "view"> => answer?.state === "ready";

/** Both sides as one table once all answers are there. */
function useCompared(answers: Answers, of: number): Table | null {
  const tables = answers.filter(isReady);
  return useMemo(
    () => (tables.length === answers.length ? comparedTable(tables.slice(0, of), tables.slice(of)) : null),
    [...answers, of],
  );
}

/** The comparison; `of` is the base. */
export function ComparedAreas({ of, chosen }: { of: Bookmark; chosen: Area }) {
  const sides = [of, chosen].map((area) => workersOf(area).map((id) => [id, sourceOf(id), area] as const));
  const hidden = sides.flat().filter(([, source]) => !source).map(([id]) => id);
  const shown = sides.map((side) => side.filter((one): one is readonly [string, Source, Area] => one[1] !== undefined));
  const answers = useAreaAnswers(shown.flat().map(([, source, area]) => [source, area] as const));
  const table = useCompared(answers, shown[0]!.length);
  const answered = useShown(table ?? answers.find(isFailed) ?? answers.find(isLoading) ?? null);
  return (
    <Scoped entry={ENTRY} label="Areas compared">
      <Basis of={of} chosen={chosen} />
      {hidden.length > 0 && <p class="problem">{[...new Set(hidden)].join(", ")}: not shown, and so not counted.</p>}
      <AnswerView shown={answered} title="Areas compared">{(shown) => <Content table={shown} />}</AnswerView>
    </Scoped>
  );
}

function Content({ table }: { table: Table }) {
  const ready = useMemo(() => readyAreas(table, ENTRY), [table]);
  if (!ready.count) return <p class="quiet">Nothing ran in either area.</p>;
  return <AreaRows table={table} ready={ready} entry={ENTRY} findRow={findName} />;
}
