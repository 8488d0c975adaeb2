import { h } from "preact";
import { isReport } from "../api/report.ts";
import { cachedTable, useAnswer } from "../app/answers.ts";
import { absences, type Entry, isAbsent } from "../app/entries.ts";
import {
  address,
  countedFindings,
  entries,
  firstTab,
  go,
  isFindingViews,
  listedRun,
  listing,
  missingInPanel,
  openEntry,
  openTrace,
  openView,
  traceState,
} from "../app/router.ts";
import { decimal, plural, quantity } from "../format/numbers.ts";
import { letters } from "../ui/keys.ts";
import { CaptureButton } from "./capture.tsx";
import { CaptureChoice } from "./capture_choice.tsx";
import { CompareChoice } from "./compare_choice.tsx";
import { healthCounts } from "./head.tsx";
import { PlaceChoice } from "./place_choice.tsx";

/** The number next to an entry's title: only from answers that the page has, since no number is worth a request. */
function figureText({ figure, tabs }: Entry): string {
  const counts = tabs.some(({ level }) => level) && healthCounts();
  if (counts) return counts[0] ?? "✓";
  const table = figure && cachedTable(figure.view);
  if (!table) return "";
  const column = table.columns.find(({ name }) => name === figure.column);
  const rows = Object.values(table.data)[0]?.length ?? 0;
  if (!figure.column) return decimal(rows);
  const plus = table.data.is_relative?.[0] ? "+" : "";
  return column && rows ? plus + quantity(table.data[column.name]![0] as number, column.kind) : "";
}

function EntryButton({ entry, letter }: { entry: Entry; letter: string }) {
  const { title, question } = entry;
  const figure = figureText(entry), isOpen = title === openEntry.value?.title;
  return (
    <button
      ref={isOpen ? (button) => button?.scrollIntoView({ block: "nearest" }) : null}
      type="button"
      aria-current={isOpen ? "page" : undefined}
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
  const absent = absences(entries.value, missingInPanel.value);
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
  const listed = entries.value.filter((entry) => !isAbsent(entry, missingInPanel.value) || entry === openEntry.value);
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
      <Findings />
    </nav>
  );
}

/** Asks for a view before a visit. */
function Prefetch({ view }: { view: string }) {
  useAnswer(view);
  return null;
}

/** Asks for all findings, more than the state of the trace counts at first, so that all pages count the same. */
const Findings = () =>
  traceState.value?.state === "ready" && countedFindings.value.map(({ id }) => <Prefetch key={id} view={id} />);

/** Sentences that are folded, each about something. */
const Notes = ({ title, notes }: { title: string; notes: [about: string, text: string][] }) => (
  <details>
    <summary>{title}</summary>
    <ul>
      {notes.map(([about, text]) => (
        <li key={about + text}>
          <b>{about}</b>
          <span>{text}</span>
        </li>
      ))}
    </ul>
  </details>
);

/** What is known about the run as a whole, first the recordings that it lacks. */
function Outcomes() {
  const notes = listedRun(address.value.run)?.notes ?? [];
  if (!notes.length) return null;
  const lost = notes.reduce((sum, { level, ranks }) => sum + (level === "loss" ? ranks : 0), 0);
  const title = lost ? `${plural(lost, "recording")} of this run missing` : "About this run";
  return <Notes title={title} notes={notes.map(({ level, text }) => [level, text])} />;
}

/** Files that look like recordings, and why they are no use. */
function Problems() {
  const problems = listing.value?.problems ?? [];
  if (!problems.length) return null;
  const notes = problems.map(({ path, reason }): [string, string] => [path, reason]);
  return <Notes title={`${plural(problems.length, "file")} not usable`} notes={notes} />;
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
          <PlaceChoice key="choices" place={address.value} open={openTrace} />,
          <CaptureChoice key="graph-capture" of="capture" state={traceState.value} />,
          <Outcomes key="outcomes" />,
          isReport ? null : <CompareChoice key="compare" />,
          isReport ? null : <CaptureButton key="capture" />,
          <Entries key="entries" />,
          <Problems key="problems" />,
        ]}
    </aside>
  );
}
