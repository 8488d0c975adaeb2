import { Fragment, h } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { hiddenColumns, toggleColumn } from "./column_choice.ts";
import type { Ready } from "./columns.ts";
import { decimal, plural, quantity } from "../format/numbers.ts";
import { useTableScope } from "./table_scope.tsx";
import { outermost } from "./tree.ts";
import { Check } from "../ui/choice.tsx";
import { useKeys } from "../ui/keys.ts";

/** The filter's box; `/` goes there, Escape leaves it. */
export function FilterBox({ problem }: { problem: string }) {
  const scope = useTableScope();
  const box = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => box.current?.select() }, scope.box);
  return (
    <>
      <div class="filter">
        <input
          ref={box}
          type="search"
          value={scope.get("filter")}
          placeholder="Filter: words, -not, re:.*"
          aria-label="Filter rows"
          aria-invalid={problem ? "true" : undefined}
          data-tip="Rows with all words; -word excludes, re: starts a pattern"
          onInput={(event) => scope.go({ filter: event.currentTarget.value, row: "", open: "", turned: "" })}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
      </div>
      {problem && <span class="problem" role="alert">Invalid pattern: {problem}</span>}
    </>
  );
}

export function Columns({ ready }: { ready: Ready }) {
  const scope = useTableScope();
  const [, ...others] = ready.columns, hidden = hiddenColumns(ready, scope);
  if (others.length < 2) return null;
  return (
    <details
      class="columns"
      onKeyDown={({ key, currentTarget }) => key === "Escape" && (currentTarget.open = false)}
      onFocusOut={({ relatedTarget, currentTarget }) =>
        relatedTarget && !currentTarget.contains(relatedTarget as Node) && (currentTarget.open = false)}
    >
      <summary>Columns</summary>
      <div role="group" aria-label="Columns">
        {others.map((column) => (
          <Check
            key={column.name}
            tip={column.doc}
            isOn={!hidden.includes(column)}
            set={() => toggleColumn(scope, column.name)}
          >
            {column.title}
          </Check>
        ))}
        <button type="button" class="link" onClick={() => scope.go({ columns: "", widths: "" })}>Reset</button>
      </div>
    </details>
  );
}

/** How many rows are shown, and their sums; `rows` in any order. */
export function Sums({ ready, rows }: { ready: Ready; rows: Uint32Array }) {
  const sums = useMemo(() => {
    const summed = ready.tree ? outermost(ready.tree, rows) : rows;
    return ready.columns.filter(({ isSummed }) => isSummed).map(({ name, title, kind, values }) => {
      let sum = 0;
      for (let i = 0; i < summed.length; i++) sum += Number(values[summed[i]!]) || 0; // a callback would be slower
      return { name, title, sum, text: quantity(sum, kind) };
    });
  }, [ready, rows]);
  const shown = rows.length === ready.count
    ? plural(rows.length, "row")
    : `${decimal(rows.length)} of ${plural(ready.count, "row")}`;
  const scope = useTableScope(), { entry } = scope;
  const hidden = [...ready.emptyColumns, ...hiddenColumns(ready, scope)];
  return (
    <p class="sums" role="status">
      <b>{shown}</b>
      {sums.map(({ name, title, sum, text }) =>
        sum !== 0 && (
          <span key={name}>
            {title} <b>{text}</b>
            {name === entry.weight && entry.whole && rows.length === ready.count && ` of ${entry.whole}`}
          </span>
        )
      )}
      {hidden.length > 0 && (
        <span data-tip={hidden.map(({ title }) => title).join(", ")}>{plural(hidden.length, "column")} hidden</span>
      )}
    </p>
  );
}
