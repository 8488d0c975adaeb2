import { type ComponentChildren, Fragment, h } from "preact";
import { useRef } from "preact/hooks";
import { cachedTable } from "../app/answers.ts";
import { tabLabel } from "../app/entries.ts";
import { currentUrl } from "../app/host.ts";
import {
  countedFindings,
  findingViews,
  HISTORY,
  isInSnapshot,
  missing,
  openEntry,
  openTab,
  openView,
  placeLabels,
  switchTab,
  traceState,
} from "../app/router.ts";
import type { ViewEntry } from "../api/types.ts";
import { decimal, plural } from "../format/numbers.ts";
import { copy } from "../ui/copy.ts";
import { useContext } from "../views/overview/overview.tsx";

/** How many problems the trace has, the most serious first; null while it loads. */
export function healthCounts(): string[] | null {
  const state = traceState.value;
  if (state?.state !== "ready") return null;
  // Tables know more than the state while it searched captures.
  const levels = findingViews.value.map(({ id, level }) => cachedTable(id)?.data[level!]);
  const [loss, warning, note] = (["loss", "warning", "note"] as const).map((level) =>
    levels.flat().filter((one) => one === level).length + (levels[0] ? 0 : state.findings[level] ?? 0)
  );
  return [
    loss ? `${decimal(loss)} ${loss === 1 ? "loss" : "losses"}` : "",
    warning ? plural(warning, "warning") : "",
    note ? plural(note, "note") : "",
  ].filter(Boolean);
}

/** What is wrong with the trace; `isOfLosses`: nothing if these are but notes. */
export function HealthBadge({ isOfLosses = false }: { isOfLosses?: boolean }) {
  const counts = healthCounts();
  if (!counts) return null;
  const isWhole = countedFindings.value.length === findingViews.value.length;
  const isSerious = counts[0] && !counts[0].includes("note");
  if (isOfLosses && !isSerious) return null;
  return (
    <button
      type="button"
      class={`badge ${isSerious ? "some" : ""}`}
      onClick={() => openView(findingViews.value[0]!.id)}
    >
      Trace health: {counts.join(", ") || "nothing to note"}
      {!isWhole && " on this rank"}
    </button>
  );
}

function CopyLink() {
  const button = useRef<HTMLButtonElement>(null);
  const copyUrl = () => {
    void copy(currentUrl()).then(() => (button.current!.textContent = "Copied"));
    setTimeout(() => button.current && (button.current.textContent = "Copy link"), 1500);
  };
  return (
    <button ref={button} type="button" class="badge" onClick={copyUrl} data-tip="Copy the address of exactly this page">
      Copy link
    </button>
  );
}

/** Where the trace is from: fetched on its overview only, since views of a run don't wait for any trace. */
function TraceContext() {
  const { run, worker, span } = placeLabels.value;
  return <>{useContext() || `${run} · ${worker} · ${span}`}</>;
}

/** The title of the entry, what it is about, and the trace's health. */
export function Head({ isOverview }: { isOverview: boolean }) {
  const { run, worker, span } = placeLabels.value, isOfRuns = openTab.value!.id === HISTORY.id;
  return (
    <header class="head">
      <h1>{openEntry.value!.title}</h1>
      <p>
        {isOverview
          ? <TraceContext />
          : isOfRuns
          ? `the job of ${run}`
          : [run, worker, span].filter(Boolean).join(" · ")}
      </p>
      <CopyLink />
      <HealthBadge />
    </header>
  );
}

const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at - 1 + count) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** The tabs that the trace has data for; all of them if it has none for the entry, and always the open one. */
function shownTabs(): ViewEntry[] {
  const { tabs } = openEntry.value!;
  const shown = tabs.filter(({ id }) => !(id in missing.value) || isInSnapshot(id) || id === openTab.value!.id);
  return shown.every(({ id }) => id in missing.value) ? tabs : shown;
}

/** The tabs of the open entry, as in the ARIA Authoring Practices: arrow keys go to the next one and open it. */
export function Tabs() {
  const list = useRef<HTMLDivElement>(null);
  const tabs = shownTabs();
  if (tabs.length < 2) return null;
  const open = tabs.findIndex(({ id }) => id === openTab.value!.id);
  const onKeyDown = (event: KeyboardEvent) => {
    const next = STEPS[event.key]?.(open, tabs.length);
    if (next === undefined) return;
    event.preventDefault();
    switchTab(tabs[next]!.id);
    (list.current!.children[next] as HTMLElement).focus();
  };
  return (
    <div ref={list} class="entry-tabs" role="tablist" aria-label={openEntry.value!.title} onKeyDown={onKeyDown}>
      {tabs.map((tab, at) => (
        <button
          key={tab.id}
          id={`tab-${tab.id}`}
          type="button"
          role="tab"
          aria-selected={at === open}
          aria-controls="tab-panel"
          tabIndex={at === open ? 0 : -1}
          data-tip={tab.doc}
          onClick={() => switchTab(tab.id)}
        >
          {tabLabel(tab)}
        </button>
      ))}
    </div>
  );
}

/** What the open tab shows; without tabs there is no such role. */
export function TabPanel({ children }: { children: ComponentChildren }) {
  const tabs = shownTabs();
  if (tabs.length < 2) return <>{children}</>;
  return <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${openTab.value!.id}`}>{children}</div>;
}
