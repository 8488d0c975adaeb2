/** What ran in the part of the area that is of one worker, of streams or of threads: by group, or as a flame graph. */

import { type ComponentChildren, Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import type { Find } from "../../api/timeline_types.ts";
import type { Picture, Table, ViewEntry } from "../../api/types.ts";
import { useShown } from "../../app/answers.ts";
import { address, go } from "../../app/router.ts";
import { FlameGraph } from "../../charts/flame_graph.tsx";
import { readableName } from "../../format/readable_names.ts";
import { plural, quantity } from "../../format/numbers.ts";
import { type DrawnColumn, omitColumns, prepareTable } from "../../table/columns.ts";
import { RowDetail } from "../../table/row_detail.tsx";
import { useRows } from "../../table/rows.ts";
import { SaveRows } from "../../table/save.tsx";
import { Scoped } from "../../table/table_scope.tsx";
import { FilterBox, Sums } from "../../table/tools.tsx";
import { Depth, TreeTable } from "../../table/tree_table.tsx";
import { Segments } from "../../ui/segments.tsx";
import { AnswerView } from "../../ui/status.tsx";
import { type Covering, type Side, SIDES, sidesOf } from "../model/area_sides.ts";
import type { Area } from "../model/url_codec.ts";
import type { Source } from "../state/sources.ts";
import { areaGroup } from "./area_form.tsx";
import { type AreaAnswer, BY_NAME, useAreaAnswers } from "./area_query.ts";
import { AreaRows, entryOf, findName, onSide } from "./area_rows.tsx";

const FLAMES: Picture & { kind: "tree" } = {
  kind: "tree",
  parent: "parent",
  widths: [],
  folded: null,
  is_in_order: false,
  color: "",
};
const LARGEST_FIRST = [{ name: "total_ns", descending: true }];
const TITLES: Record<Side, string> = { device: "GPU", host: "Host" };

/** The slices of a row. */
function finder(by: string, isDevice: boolean): (table: Table, row: number) => Find | null {
  return (table, row) => {
    const { name: names, process } = table.data, name = names?.[row] ?? null;
    if (by === "name") return onSide(findName(table, row), isDevice);
    if (by === "category") return onSide({ category: name }, isDevice);
    if (by === "thread") return { in_thread: name, in_process: process![row]! };
    return { [`in_${by}`]: name, side: isDevice ? "device" : "host" };
  };
}

/** The answer as that of a view, so that what draws views draws it. */
const useNamed = (answer: AreaAnswer | null, view: string) =>
  useMemo(() => (answer?.state === "ready" ? { ...answer, view } : answer), [answer, view]);

const NAMED = 3; // of the slices that cover the area

/** The slices that cover the area, the innermost last. */
function CoveringNote({ covering: { names, own_ns, count } }: { covering: Covering }) {
  if (!count) return null;
  return (
    <p class="quiet" role="note" data-tip={names.join("\n")}>
      Around the whole area, and not listed: {names.length > NAMED && "… › "}
      {names.slice(-NAMED).map(readableName).join(" › ")} ({plural(count, "slice")}, {quantity(own_ns, "duration")}{" "}
      self)
    </p>
  );
}

function Pivot({ table, entry, isDevice, children }: {
  table: Table;
  entry: ViewEntry;
  isDevice: boolean;
  children: ComponentChildren;
}) {
  const ready = prepareTable(table, entry), findRow = finder(areaGroup.value, isDevice);
  return <AreaRows {...{ table, ready, entry, findRow, children }} />;
}

function Flames({ table, entry, children }: { table: Table; entry: ViewEntry; children: ComponentChildren }) {
  const ready = prepareTable(table, entry), rows = useRows(ready, entry), tree = ready.tree!;
  const inTree = useMemo(() => omitColumns(ready, ["kind"]), [ready]);
  const detail = (row: number, inSight: DrawnColumn[]) => <RowDetail {...{ ready, table, row, inSight }} />;
  return (
    <>
      <div class="tools">
        {children}
        <FilterBox problem={rows.problem} />
      </div>
      <div class="beside">
        <FlameGraph entry={entry} table={table} ready={ready} rows={rows} tree={tree} picture={FLAMES} />
        <div>
          <div class="tools">
            <Depth tree={tree} />
            <Sums ready={ready} rows={rows.matches} />
            <span class="space" />
            <SaveRows table={table} rows={rows.rows} />
          </div>
          <TreeTable
            ready={inTree}
            rows={rows.keys.length ? rows : { ...rows, keys: LARGEST_FIRST }}
            tree={tree}
            label="Calls in the area"
            detail={detail}
          />
        </div>
      </div>
    </>
  );
}

function AreaFlames({ source, chosen, side, children }: {
  source: Source;
  chosen: Area;
  side: Side;
  children: ComponentChildren;
}) {
  const id = `area_flames.${source.id}.${side}`;
  const entry = useMemo(() => entryOf(id, "total_ns", FLAMES), [id]);
  const [answer] = useAreaAnswers([[source, chosen]], { route: "timeline/area/flame", query: { side } });
  return (
    <Scoped entry={entry} label={`Flame graph, ${TITLES[side]}`} class="">
      <AnswerView shown={useShown(useNamed(answer!, id))} title="Area">
        {(table) => <Flames table={table} entry={entry}>{children}</Flames>}
      </AnswerView>
    </Scoped>
  );
}

export function AreaPivot({ source, chosen, isFlame }: { source: Source; chosen: Area; isFlame: boolean }) {
  const id = `in_area.${source.id}`, by = isFlame ? "name" : areaGroup.value;
  const entry = useMemo(() => entryOf(id, "self_ns"), [id]); // totals of slices that lie in each other add up to nothing
  const [answer] = useAreaAnswers([[source, chosen]], by === "name" ? BY_NAME : { ...BY_NAME, query: { by } });
  return (
    <Scoped entry={entry} label={`Area, ${source.id}`}>
      <AnswerView shown={useShown(useNamed(answer!, id))} title="Area">
        {(whole) => <Sides {...{ whole, source, chosen, isFlame, entry }} />}
      </AnswerView>
    </Scoped>
  );
}

/** What ran on streams, or on threads. */
function Sides({ whole, source, chosen, isFlame, entry }: {
  whole: Table;
  source: Source;
  chosen: Area;
  isFlame: boolean;
  entry: ViewEntry;
}) {
  const bySide = useMemo(() => sidesOf(whole), [whole]);
  const present = SIDES.filter((side) => bySide[side]);
  const side = present.find((one) => one === address.value.area_side) ?? present[0];
  if (!side) return <p class="quiet">Nothing ran here: these tracks have no slice in this time.</p>;
  const { rows, covering } = bySide[side]!;
  const choice = present.length > 1 && (
    <Segments
      label="Where it ran"
      options={present.map((one) => [one, TITLES[one]] as const)}
      value={side}
      pick={(area_side) => go({ area_side })}
    />
  );
  return (
    <>
      <CoveringNote covering={covering} />
      {isFlame
        ? <AreaFlames key={side} {...{ source, chosen, side }}>{choice}</AreaFlames>
        : <Pivot table={rows} entry={entry} isDevice={side === "device"}>{choice}</Pivot>}
    </>
  );
}
