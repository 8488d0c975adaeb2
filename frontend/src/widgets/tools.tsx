import { useRef, useState } from "preact/hooks";
import type { Table, ViewEntry } from "../api.ts";
import { csv, type Ready, tsv } from "../columns.ts";
import { decimal, label, plural, quantity } from "../format.ts";
import { address, catalogue, go, openEntry, trace } from "../state.ts";
import { copy, download } from "./copy.ts";
import { useKeys } from "./keys.ts";

/** The filter's box; `/` goes there, Escape leaves it. */
export function FilterBox({ problem }: { problem: string }) {
  const box = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => box.current?.select() });
  return (
    <div class="filter">
      <input
        ref={box}
        type="search"
        value={address.value.filter ?? ""}
        placeholder="Filter: words, -without, re:pattern"
        aria-label="Filter rows"
        aria-invalid={problem ? "true" : undefined}
        data-tip="Rows that have all words, in any text column; -word leaves out, re: begins a regular expression"
        onInput={(event) => go({ filter: event.currentTarget.value, row: "", open: "" })}
        onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
      />
    </div>
  );
}

/** A view's variants side by side. */
export function GroupBy({ drawn }: { drawn: ViewEntry }) {
  const base = openEntry.value!;
  const variants = catalogue.value.filter(({ variant_of }) => variant_of === base.id);
  if (!variants.length) return null;
  return (
    <div class="segments" role="group" aria-label="Group by">
      <span>Group by</span>
      <div>
        {[base, ...variants].map(({ id, variant, title }) => (
          <button
            key={id}
            type="button"
            aria-pressed={id === drawn.id}
            onClick={() => go({ group: id === base.id ? "" : id, row: "", open: "" }, "push")}
          >
            {variant || title}
          </button>
        ))}
      </div>
    </div>
  );
}

/** Choices for the view's parameters, the server's default first. */
export function Parameters({ entry }: { entry: ViewEntry }) {
  return entry.parameters.filter(({ kind }) => kind === "choice").map(({ name, choices }) => (
    <label key={name}>
      {label(name)}{" "}
      <select
        value={address.value[`set.${name}`] ?? choices[0]}
        onChange={({ currentTarget: { value } }) => go({ [`set.${name}`]: value === choices[0] ? "" : value })}
      >
        {choices.map((choice) => <option key={choice} value={choice}>{choice}</option>)}
      </select>
    </label>
  ));
}

export const topCount = () => Math.min(50, Math.max(1, Number(address.value.top) || 10));

export function TopN() {
  return (
    <label data-tip="How many of the largest rows the charts name">
      Top{" "}
      <input
        type="number"
        min={1}
        max={50}
        value={topCount()}
        onInput={({ currentTarget: { value } }) => go({ top: value === "10" ? "" : value })}
      />
    </label>
  );
}

/** Copies the rows that are shown, or saves them. */
export function Export({ table, rows }: { table: Table; rows: Uint32Array }) {
  const [told, tell] = useState("");
  const { run, worker, span } = trace.value;
  const { columns, data, view } = table;
  const copied = async () => {
    await copy(tsv(columns, data, rows));
    tell(`${plural(rows.length, "row")} copied`);
    setTimeout(() => tell(""), 2000);
  };
  const file = `${[run, worker, span, view].join(".").replace(/[^\w.-]+/g, "_")}.csv`;
  return (
    <>
      <span class="quiet copied" role="status">{told}</span>
      <button type="button" onClick={copied} data-tip="The rows shown, in ns, bytes and fractions, for a spreadsheet">
        Copy
      </button>
      <button
        type="button"
        onClick={() => download(file, csv(columns, data, rows), "text/csv")}
        data-tip="The rows shown as a CSV file, in ns, bytes and fractions"
      >
        CSV
      </button>
    </>
  );
}

/** How many rows are shown, and their sums. */
export function Sums({ ready, rows }: { ready: Ready; rows: Uint32Array }) {
  const shown = rows.length === ready.count
    ? plural(rows.length, "row")
    : `${decimal(rows.length)} of ${plural(ready.count, "row")}`;
  const empty = ready.emptyColumns.length;
  return (
    <p class="sums" role="status">
      <b>{shown}</b>
      {ready.columns.filter(({ isSummed }) => isSummed).map(({ name, title, kind, values }) => {
        const sum = rows.reduce((total, row) => total + (Number(values[row]) || 0), 0);
        return (
          <span key={name}>
            {title} <b>{quantity(sum, kind)}</b>
          </span>
        );
      })}
      {empty > 0 && (
        <span data-tip={ready.emptyColumns.map(({ title }) => title).join(", ")}>
          {plural(empty, "empty column")} hidden
        </span>
      )}
    </p>
  );
}
