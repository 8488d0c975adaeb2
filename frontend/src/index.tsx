import { render as mount } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { isReport } from "./api/report.ts";
import { comparisonBase } from "./app/comparison_base.ts";
import { followTheme } from "./app/host.ts";
import {
  address,
  drawnEntry,
  listedViews,
  listing,
  openEntry,
  openView,
  outage,
  placeLabels,
  retry,
  start,
  TIMELINE,
  traceState,
  unknownView,
} from "./app/router.ts";
import { decimal, plural } from "./format/numbers.ts";
import { KeysSheet, TABLE_KEYS } from "./shell/keys_sheet.tsx";
import { Sidebar } from "./shell/sidebar.tsx";
import { Welcome } from "./shell/welcome.tsx";
import capture from "./styles/capture.css" with { type: "text" };
import charts from "./styles/charts.css" with { type: "text" };
import compare from "./styles/compare.css" with { type: "text" };
import curves from "./styles/curves.css" with { type: "text" };
import event from "./styles/event.css" with { type: "text" };
import overview from "./styles/overview.css" with { type: "text" };
import perfetto from "./styles/perfetto.css" with { type: "text" };
import shell from "./styles/shell.css" with { type: "text" };
import table from "./styles/table.css" with { type: "text" };
import theme from "./styles/theme.css" with { type: "text" };
import timeline from "./styles/timeline.css" with { type: "text" };
import timelinePanels from "./styles/timeline_panels.css" with { type: "text" };
import tree from "./styles/tree.css" with { type: "text" };
import { KEYS as TIMELINE_KEYS } from "./timeline/input/keyboard_input.ts";
import { TimelinePage } from "./timeline/page.tsx";
import { type Commands, letters, startKeys, useKeys } from "./ui/keys.ts";
import { prose } from "./ui/prose.tsx";
import { Failure, Skeleton } from "./ui/status.tsx";
import { Tip } from "./ui/tip.tsx";
import { Overview, useContext } from "./views/overview/overview.tsx";
import { ComparedOverview } from "./views/overview/overview_comparison.tsx";
import { ViewPage } from "./views/view_page.tsx";
import { useSignal } from "@preact/signals";

/** The view with a hand-made page instead of that of all others; `views/overview/` reads its columns by name. */
const OVERVIEW = "overview";

const OverviewPage = () => comparisonBase.value ? <ComparedOverview /> : <Overview />;

function HealthBadge() {
  const state = traceState.value;
  if (state?.state !== "ready") return null;
  const { loss = 0, warning = 0, note = 0 } = state.findings;
  const counts = [
    loss && `${decimal(loss)} ${loss === 1 ? "loss" : "losses"}`,
    warning && plural(warning, "warning"),
    note && plural(note, "note"),
  ].filter(Boolean);
  return (
    <button type="button" class={`badge ${loss || warning ? "some" : ""}`} onClick={() => openView("health")}>
      Trace health: {counts.join(", ") || "nothing to note"}
    </button>
  );
}

/** Where the trace is from: fetched on its overview only, since views of a run don't wait for any trace. */
function Context() {
  const { run, worker, span } = placeLabels.value;
  return <>{useContext() || `${run} · ${worker} · ${span}`}</>;
}

function Head() {
  const entry = drawnEntry.value!;
  return (
    <header class="head">
      <div>
        <h1>{entry.title}</h1>
        <p>{entry.id === OVERVIEW ? <Context /> : prose(entry.doc)}</p>
      </div>
      <HealthBadge />
    </header>
  );
}

/** Says that the address names no view, and offers the most similar one. */
function UnknownView() {
  if (!unknownView.value) return null;
  const { view, nearest } = unknownView.value;
  return (
    <p class="banner" role="status">
      There is no view “{view.slice(0, 60)}”.{" "}
      <button type="button" onClick={() => openView(nearest.id)}>Open {nearest.title}</button>
    </p>
  );
}

function Main() {
  const box = useRef<HTMLElement>(null);
  const { view, group } = address.value;
  useLayoutEffect(() => box.current?.scrollTo(0, 0), [view, group]);
  const entry = drawnEntry.value;
  const isTimeline = entry?.id === TIMELINE.id;
  const isWaiting = !listing.value || !entry || (listing.value.scanning && !listing.value.runs.length);
  let content;
  if (isWaiting) content = outage.value ? <Failure {...outage.value} /> : <Skeleton />;
  else if (!listing.value!.runs.length && !address.value.run) {
    content = <Welcome problems={listing.value!.problems.length} />;
  } else if (isTimeline) content = <TimelinePage />;
  else {
    content = (
      <>
        <Head />
        {entry.id === OVERVIEW ? <OverviewPage /> : <ViewPage key={address.value.view} />}
      </>
    );
  }
  return (
    <main ref={box} class={isTimeline && !isWaiting ? "whole" : ""}>
      {!isWaiting && outage.value && (
        <p class="banner" role="status">
          TensorBoard doesn't answer at the moment. <button type="button" onClick={retry}>Try again</button>
        </p>
      )}
      {!isWaiting && <UnknownView />}
      {content}
    </main>
  );
}

function goCommands(): Commands {
  const pairs = [...letters(listedViews.value)].filter(([, letter]) => letter);
  return Object.fromEntries(pairs.map(([id, letter]) => [`g ${letter}`, () => openView(id)]));
}

function App() {
  const sheet = useSignal(false);
  const isTimeline = openEntry.value?.id === TIMELINE.id;
  useKeys({ "?": () => (sheet.value = true), ...goCommands() });
  return (
    <div class={`shell ${address.value.side === "folded" ? "folded" : ""}`}>
      <Sidebar />
      <Main />
      {sheet.value && (
        <KeysSheet
          keys={isTimeline ? TIMELINE_KEYS : TABLE_KEYS}
          onClose={() => (sheet.value = false)}
        />
      )}
      <Tip />
    </div>
  );
}

/** TensorBoard imports this module into the plugin's frame and calls this. */
export function render() {
  document.documentElement.lang = "en";
  document.title = "PyTorch profiler";
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(
    [theme, shell, table, charts, curves, event, tree, compare, timeline, timelinePanels, perfetto, capture, overview]
      .join("\n"),
  );
  document.adoptedStyleSheets = [sheet];
  followTheme();
  startKeys();
  mount(<App />, document.body);
  start();
  globalThis.focus();
}

if (isReport) render(); // else TensorBoard calls it
