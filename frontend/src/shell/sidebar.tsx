import { Fragment, h } from "preact";
import { isReport } from "../api/report.ts";
import { cachedTable } from "../app/answers.ts";
import { absences, type Entry, isAbsent } from "../app/entries.ts";
import {
  address,
  entries,
  firstTab,
  go,
  isFindingViews,
  listing,
  missing,
  openEntry,
  openTrace,
  openView,
  placeIn,
  spanLabel,
  traceState,
} from "../app/router.ts";
import { decimal, quantity } from "../format/numbers.ts";
import { letters } from "../ui/keys.ts";
import { CaptureButton } from "./capture.tsx";
import { CompareChoice } from "./compare_choice.tsx";
import { healthCounts } from "./head.tsx";
import { Selector } from "./selector.tsx";

let captures: string[] = []; // until those of another trace are known

/** Which trace is shown. Another one keeps the view, the filter and the order. */
function Choices() {
  const { run = "", worker = "", span = "", capture = "" } = address.value;
  const state = traceState.value;
  if (state?.state === "ready") captures = state.captures;
  const runs = listing.value?.runs ?? [];
  const workers = runs.find(({ name }) => name === run)?.workers ?? [];
  const spans = workers.find(({ name }) => name === worker)?.spans ?? [];
  return (
    <>
      <Selector
        title="Run"
        value={run}
        options={runs.map(({ name, label }) => [name, label])}
        onPick={(name) => openTrace(placeIn(name, worker, span))}
      />
      <Selector
        title="Worker"
        value={worker}
        options={workers.map(({ name }) => [name, name])}
        onPick={(name) => openTrace(placeIn(run, name, span))}
      />
      <Selector
        title="Span"
        value={span}
        options={spans.map((span) => [span.name, spanLabel(run, worker, span)])}
        onPick={(name) => openTrace({ span: name })}
      />
      {(captures[0] || capture) && (
        <Selector
          title="Graph capture"
          value={capture}
          options={["", "none", ...captures].map((name) => [name, name || "automatic"])}
          onPick={(name) => go({ capture: name }, "push")}
        />
      )}
    </>
  );
}

/** The number beside an entry: only from answers that the page has, since no number is worth a request. */
function figureText({ figure, tabs }: Entry): string {
  const counts = tabs.some(({ id }) => id === "health") && healthCounts();
  if (counts) return counts[0] ?? "✓";
  const table = figure && cachedTable(figure.view);
  if (!table) return "";
  const column = table.columns.find(({ name }) => name === figure.column);
  const rows = Object.values(table.data)[0]?.length ?? 0;
  if (!figure.column) return decimal(rows);
  return column && rows ? quantity(table.data[column.name]![0] as number, column.kind) : "";
}

function EntryButton({ entry, letter }: { entry: Entry; letter: string }) {
  const { title, question } = entry;
  const figure = figureText(entry);
  return (
    <button
      type="button"
      aria-current={title === openEntry.value?.title ? "page" : undefined}
      data-tip={question}
      onClick={() => openView(firstTab(entry))}
    >
      {title}
      {figure && <span class="figure">{figure}</span>}
      {letter && <kbd aria-hidden="true">g {letter}</kbd>}
    </button>
  );
}

/** What the trace lacks, with what would record it. */
function Absent() {
  const absent = absences(entries.value, missing.value);
  if (!absent.length) return null;
  return (
    <details class="absent">
      <summary>Not in this trace ({absent.length})</summary>
      <ul>
        {absent.map(({ title, hint, view }) => (
          <li key={title}>
            <button type="button" class="link" onClick={() => openView(view)}>{title}</button>
            <span>{hint}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Entries() {
  const letter = letters(entries.value.map(({ title }) => title));
  const listed = entries.value.filter((entry) => !isAbsent(entry, missing.value) || entry === openEntry.value);
  return (
    <nav aria-label="Views" aria-busy={isFindingViews.value || undefined}>
      {[...Map.groupBy(listed, ({ section }) => section)].map(([section, own]) => (
        <ul key={section}>
          {own.map((entry) => (
            <li key={entry.title}>
              <EntryButton entry={entry} letter={letter.get(entry.title) ?? ""} />
            </li>
          ))}
        </ul>
      ))}
      <Absent />
    </nav>
  );
}

/** The recorder's notes about the run's ranks: which are missing, partial or lost, and why. */
function Outcomes() {
  const notes = listing.value?.runs.find(({ name }) => name === address.value.run)?.notes ?? [];
  if (!notes.length) return null;
  const losses = notes.filter(({ level }) => level === "loss");
  const lost = losses.reduce((sum, { ranks }) => sum + ranks, 0);
  const title = lost ? `${lost} ${lost === 1 ? "recording" : "recordings"} of this run missing` : "About this run";
  return (
    <details>
      <summary>{title}</summary>
      <ul>
        {notes.map(({ level, text }) => (
          <li key={text}>
            <b>{level}</b>
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function Problems() {
  const problems = listing.value?.problems ?? [];
  if (!problems.length) return null;
  return (
    <details>
      <summary>{problems.length} {problems.length === 1 ? "file" : "files"} not usable</summary>
      <ul>
        {problems.map(({ path, reason }) => (
          <li key={path}>
            <b>{path}</b>
            <span>{reason}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The panel on the left, which can be folded. */
export function Sidebar() {
  const isFolded = address.value.side === "folded";
  const title = isFolded ? "Show the panel" : "Hide the panel";
  return (
    <aside class="side" aria-label="Trace and view">
      <button
        type="button"
        class="fold"
        aria-expanded={!isFolded}
        aria-label={title}
        data-tip={title}
        onClick={() => go({ side: isFolded ? "" : "folded" })}
      >
        <span aria-hidden="true">{isFolded ? "»" : "«"}</span>
      </button>
      {!isFolded &&
        [
          <Choices key="choices" />,
          <Outcomes key="outcomes" />,
          isReport ? null : <CompareChoice key="compare" />,
          isReport ? null : <CaptureButton key="capture" />,
          <Entries key="entries" />,
          <Problems key="problems" />,
        ]}
    </aside>
  );
}
