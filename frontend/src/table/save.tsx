/** Saves charts and tables. */

import { h } from "preact";
import { useContext, useRef, useState } from "preact/hooks";
import type { Table } from "../api/types.ts";
import { csv, tsv } from "./columns.ts";
import { plural } from "../format/numbers.ts";
import { TableScopeContext } from "./table_scope.tsx";
import { openTab, trace } from "../app/router.ts";
import { copy, download } from "../ui/copy.ts";
import { pictureOf, pngOf } from "../ui/picture.ts";

/** A file name from run, worker, span, view, and part. */
export function fileName(ending: string, ...what: string[]): string {
  const { run, worker, span } = trace.peek();
  return `${[run, worker, span, ...what].filter(Boolean).join(".").replace(/[^\w.-]+/g, "_")}.${ending}`;
}

/** Buttons that save the enclosing card as drawn. */
export function SavePicture({ title }: { title: string }) {
  const box = useRef<HTMLSpanElement>(null);
  const entry = useContext(TableScopeContext)?.entry ?? openTab.value!;
  const whole = entry.title === title ? title : `${entry.title}: ${title}`;
  const name = (ending: string) => fileName(ending, entry.id, ...(entry.title === title ? [] : [title]));
  const picture = () => pictureOf(box.current!.closest(".card")!, whole);
  return (
    <span class="save" ref={box}>
      <button
        type="button"
        aria-label={`Save ${title} as SVG`}
        data-tip="Save as a vector image"
        onClick={() => download(name("svg"), picture().svg, "image/svg+xml")}
      >
        SVG
      </button>
      <button
        type="button"
        aria-label={`Save ${title} as PNG`}
        data-tip="Save as a bitmap"
        onClick={() => void pngOf(picture()).then((dots) => download(name("png"), dots, "image/png"))}
      >
        PNG
      </button>
    </span>
  );
}

/** The shown rows in the form of a server's answer. */
function json({ view, columns, data }: Table, rows: Uint32Array): string {
  const saved = columns.map(({ name }) => [name, Array.from(rows, (row) => data[name]?.[row] ?? null)]);
  return JSON.stringify({ state: "ready", view, columns, data: Object.fromEntries(saved) });
}

/** Copies the rows that are shown, or saves them. */
export function SaveRows({ table, rows }: { table: Table; rows: Uint32Array }) {
  const [status, setStatus] = useState("");
  const { columns, data, view } = table;
  const copyRows = async () => {
    await copy(tsv(columns, data, rows));
    setStatus(`${plural(rows.length, "row")} copied`);
    setTimeout(() => setStatus(""), 2000);
  };
  const save = (ending: string, text: string, type: string) => download(fileName(ending, view), text, type);
  return (
    <span class="rows">
      <span class="quiet copied" role="status">{status}</span>
      <button type="button" onClick={copyRows} data-tip="Copy these rows for a spreadsheet">
        Copy
      </button>
      <button
        type="button"
        onClick={() => save("csv", csv(columns, data, rows), "text/csv")}
        data-tip="Save these rows: ns, bytes, fractions"
      >
        CSV
      </button>
      <button
        type="button"
        onClick={() => save("json", json(table, rows), "application/json")}
        data-tip="As kinetoscope view --format json"
      >
        JSON
      </button>
    </span>
  );
}
