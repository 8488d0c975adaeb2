/** Why a step takes longer than one of the base: terms that add up to the difference, and the work of each. */

import { Fragment, h } from "preact";
import { useMemo } from "preact/hooks";
import type { StepDifference, Table, ViewEntry } from "../api/types.ts";
import { comparisonBase, swapComparison } from "../app/comparison_base.ts";
import { openTimeline, STEP_DIFFERENCE } from "../app/router.ts";
import { type Term, Waterfall } from "../charts/waterfall.tsx";
import { decimal, quantity, type Scale, scaleFor, unbroken } from "../format/numbers.ts";
import { addKernelLabels, readableName } from "../format/readable_names.ts";
import { capitalized } from "../format/steps.ts";
import { prepareTable, type Ready, weightAfter } from "../table/columns.ts";
import { formatSigned } from "../table/comparison_columns.ts";
import { RowDetail } from "../table/row_detail.tsx";
import { useRows } from "../table/rows.ts";
import { SaveRows } from "../table/save.tsx";
import { DataTable } from "../table/table.tsx";
import { Scoped, useTableScope } from "../table/table_scope.tsx";
import { FilterBox, Sums } from "../table/tools.tsx";
import { Part } from "../ui/details.tsx";
import { LinkTo } from "../ui/link.tsx";
import { AnswerView, Notice } from "../ui/status.tsx";
import { useViewComparison } from "./comparison.tsx";

const KEY = ["kind", "base_work", "new_work"] as const;
const KINDS = ["same work", "only in base", "only in new", "exposed communication", "overlap"]; // then idle, by cause
const MOST_ROWS = 20;
const SIDES = ["base", "new"] as const;

const entryOf = ({ columns }: Table): ViewEntry => ({ ...STEP_DIFFERENCE, columns, key: [...KEY], weight: "delta_ns" });

/** The bar that a row is a part of: its kind, and of idle time the cause. */
const termOf = (data: Table["data"], row: number): string =>
  data.kind![row] === "idle" ? `idle: ${data.base_work![row] || data.new_work![row]}` : String(data.kind![row]);

/** A bar per kind, and per cause of idle time, the largest one first. */
function termsOf({ columns, data }: Table): Term[] {
  const sums = new Map<string, number>();
  const doc = columns[0]!.doc;
  data.kind!.forEach((_, row) => {
    const name = termOf(data, row);
    sums.set(name, (sums.get(name) ?? 0) + Number(data.delta_ns![row]));
  });
  const place = (name: string) => KINDS.indexOf(name) < 0 ? KINDS.length : KINDS.indexOf(name);
  return [...sums].filter(([, delta]) => delta).map(([name, delta]) => ({ name, delta, tip: doc }))
    .sort((a, b) => place(a.name) - place(b.name) || Math.abs(b.delta) - Math.abs(a.delta));
}

const timesOf = (data: Table["data"]) => scaleFor("duration", [...data.base_ns!, ...data.new_ns!]);

/** The table with base, new and difference on one scale, and the difference in its color, in sight on a narrow page. */
function signed(ready: Ready, { data }: Table): Ready {
  const scale = timesOf(data), delta = data.delta_ns!;
  const columns = ready.columns.map((column) => {
    if (column.kind !== "duration") return column;
    const timed = { ...column, scale, bar: null, isSummed: true };
    if (column.name !== "delta_ns") return timed;
    const tone = (row: number) => `${Number(delta[row]) > 0 ? "grew" : "shrank"} real`;
    return { ...timed, title: "Δ", shown: (row: number) => formatSigned(delta[row], scale), tone };
  });
  return { ...ready, columns: weightAfter(columns, "delta_ns") };
}

/** Opens the timeline where something runs; for the base that swaps both recordings. */
function show(side: "base" | "new", from: number, to: number) {
  if (side === "base") swapComparison();
  openTimeline({ find: null, range: { from, to } });
}

/** Matches, rows or gaps of a term: what they are on each side, and when the first of them runs. */
function Work({ data, row, scale }: { data: Table["data"]; row: number; scale: Scale }) {
  const number = (name: string) => Number(data[name]![row]);
  return (
    <li>
      <p>
        <b>{number("repeats") > 1 ? `×${decimal(number("repeats"))} ` : ""}</b>
        {`${quantity(number("base_ns"), "duration")} → ${quantity(number("new_ns"), "duration")}, `}
        {formatSigned(number("delta_ns"), scale)} {scale.unit}
      </p>
      {SIDES.map((side) =>
        number(`${side}_rows`) > 0 && (
          <p key={side}>
            <span class="quiet">{capitalized(side)}</span>
            <code data-tip={data[`${side}_kernels`]![row]}>
              {String(data[`${side}_kernels`]![row]).split(" + ").map(readableName).join(" + ")}
            </code>
            <LinkTo
              open={() => show(side, number(`${side}_start_ns`), number(`${side}_end_ns`))}
              tip={`The first of ${decimal(number(`${side}_rows`))}${side === "base" ? "; swaps both recordings" : ""}`}
            >
              Timeline
            </LinkTo>
          </p>
        )
      )}
    </li>
  );
}

/** What a term consists of on both sides. */
function Rows({ of, row }: { of: Table; row: number }) {
  const term = Object.fromEntries(KEY.map((name) => [name, String(of.data[name]![row])]));
  const scope = useTableScope(), isWhole = scope.get("open") === "rows";
  const shown = useViewComparison("step_difference_rows", term);
  return (
    <AnswerView shown={shown} title="">
      {({ data }) => {
        const count = data.kind!.length, scale = scaleFor("duration", data.delta_ns!);
        return (
          <Part title="Its work on both sides">
            <ol class="both-sides">
              {[...Array(isWhole ? count : Math.min(count, MOST_ROWS)).keys()].map((nth) => (
                <Work key={nth} data={data} row={nth} scale={scale} />
              ))}
            </ol>
            {count > MOST_ROWS && !isWhole && (
              <button
                type="button"
                class="link"
                onClick={() => scope.go({ open: "rows" })}
              >
                Show all {decimal(count)}
              </button>
            )}
          </Part>
        );
      }}
    </AnswerView>
  );
}

function Content({ table }: { table: StepDifference }) {
  const scope = useTableScope(), { data } = table;
  addKernelLabels(table.labels);
  const entry = useMemo(() => entryOf(table), [table]), terms = useMemo(() => termsOf(table), [table]);
  const plain = prepareTable(table, entry);
  const ready = useMemo(() => signed(plain, table), [plain, table]);
  const rows = useRows(ready, entry);
  const scale = timesOf(data);
  const pick = (name: string) => scope.go({ filter: name.replace(": ", " "), row: "", open: "" }, "push");
  return (
    <>
      <section class="verdict" aria-label="Step difference" style={{ borderColor: "var(--accent)" }}>
        <div>
          <p class="sentence">{unbroken(table.headline)}</p>
          <p>{unbroken(table.coverage)}</p>
        </div>
      </section>
      <figure class="card">
        <Waterfall
          terms={terms}
          total="Step"
          scale={scale}
          label="Terms of the difference"
          onPick={pick}
        />
        <figcaption class="quiet">New − base, {scale.unit}. Each bar begins where the one above ends.</figcaption>
      </figure>
      <div class="tools">
        <FilterBox problem={rows.problem} />
        <span class="space" />
        <SaveRows table={table} rows={rows.rows} />
      </div>
      <Sums ready={ready} rows={rows.matches} />
      <DataTable
        ready={ready}
        rows={rows}
        label="Terms"
        detail={(row, inSight) => (
          <RowDetail {...{ ready, table, row, inSight }}>
            <Rows of={table} row={row} />
          </RowDetail>
        )}
      />
    </>
  );
}

function Compared() {
  const shown = useViewComparison(STEP_DIFFERENCE.id);
  return (
    <Scoped entry={STEP_DIFFERENCE}>
      <AnswerView shown={shown} title={STEP_DIFFERENCE.title}>
        {(table) => <Content table={table as StepDifference} />}
      </AnswerView>
    </Scoped>
  );
}

/** The page; without a base it says what it takes. */
export function StepDifferencePage() {
  if (comparisonBase.value) return <Compared />;
  return (
    <Notice title="Nothing is compared">
      <p>Choose another recording with “Compare with…”. {STEP_DIFFERENCE.doc}</p>
    </Notice>
  );
}
