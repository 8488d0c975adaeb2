import { Fragment, h, render as mount } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { comparisonBase } from "./app/comparison_base.ts";
import { followTheme } from "./app/host.ts";
import {
  address,
  entries,
  firstTab,
  HISTORY,
  listing,
  openTab,
  openTrace,
  openView,
  outage,
  placeIn,
  retry,
  start,
  STEP_DIFFERENCE,
  subject,
  TIMELINE,
  unknownPlace,
  unknownView,
  viewTitle,
  WHY,
} from "./app/router.ts";
import { Head, HealthBadge, TabPanel, Tabs } from "./shell/head.tsx";
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
import { Failure, Notice, Skeleton } from "./ui/status.tsx";
import { Tip } from "./ui/tip.tsx";
import { Overview } from "./views/overview/overview.tsx";
import { ComparedOverview } from "./views/overview/overview_comparison.tsx";
import { HistoryPage } from "./views/history.tsx";
import { StepDifferencePage } from "./views/step_difference.tsx";
import { Heads, ViewPage } from "./views/view_page.tsx";
import { WhyBanner, WhyPage } from "./views/why.tsx";
import { useSignal } from "@preact/signals";

/** The view with a hand-made page instead of that of all others; `views/overview/` reads its columns by name. */
const OVERVIEW = "overview";

const OverviewPage = () => comparisonBase.value ? <ComparedOverview /> : <Overview />;

/** The pages that no view of the catalogue is drawn on. */
const OWN_PAGES: Record<string, () => h.JSX.Element> = {
  [OVERVIEW]: OverviewPage,
  [STEP_DIFFERENCE.id]: StepDifferencePage,
  [HISTORY.id]: HistoryPage,
  [WHY]: WhyPage,
};

/** Says that the address names no view, and offers the most similar one. */
function UnknownView() {
  if (!unknownView.value) return null;
  const { view, nearest } = unknownView.value;
  return (
    <p class="banner" role="status">
      There is no view “{view.slice(0, 60)}”.{" "}
      <button type="button" onClick={() => openView(nearest.id)}>Open {viewTitle(nearest.id)}</button>
    </p>
  );
}

/** Says that the address names no run or worker that there is, and offers the most similar one and the newest run. */
function UnknownPlace({ kind, name, nearest, label }: NonNullable<typeof unknownPlace.value>) {
  const { newest } = listing.value!;
  return (
    <Notice title={`There is no ${kind} “${name.slice(0, 200)}” here`}>
      <p>It may have been removed or renamed, or its files aren't in this folder.</p>
      {nearest && <button type="button" onClick={() => openTrace(nearest)}>Open {label}</button>}{" "}
      {newest && newest !== nearest?.run && (
        <button type="button" onClick={() => openTrace(placeIn(newest))}>Open the newest run</button>
      )}
    </Notice>
  );
}

function Main() {
  const box = useRef<HTMLElement>(null), isScrolled = useRef(false);
  const { view } = address.value;
  useLayoutEffect(() => {
    if (isScrolled.current) box.current!.scrollTo(0, 0); // lays the page out before it is whole
    isScrolled.current = false;
  }, [view]);
  const tab = openTab.value;
  const isTimeline = tab?.id === TIMELINE.id;
  const isWaiting = !listing.value || !tab || (listing.value.scanning && !listing.value.runs.length);
  let content;
  if (isWaiting) content = outage.value ? <Failure {...outage.value} /> : <Skeleton />;
  else if (!listing.value!.runs.length && !address.value.run) {
    content = <Welcome problems={listing.value!.problems.length} />;
  } else if (unknownPlace.value) content = <UnknownPlace {...unknownPlace.value} />;
  else if (isTimeline) content = <TimelinePage key={subject.value} badge={<HealthBadge isOfLosses />} />;
  else {
    const Page = OWN_PAGES[tab.id] ?? ViewPage;
    content = (
      <Fragment key={subject.value}>
        <Head isOverview={tab.id === OVERVIEW} />
        {(tab.id === OVERVIEW || tab.entry.section === "ranks") && <WhyBanner />}
        <Heads key={tab.entry.title} />
        <Tabs />
        <TabPanel>
          <Page key={tab.id} />
        </TabPanel>
      </Fragment>
    );
  }
  return (
    <main
      ref={box}
      class={isTimeline && !isWaiting ? "whole" : ""}
      onScroll={() => (isScrolled.current = true)}
    >
      {!isWaiting && outage.value && (
        <p class="banner" role="status">
          The server doesn't answer at the moment. <button type="button" onClick={retry}>Try again</button>
        </p>
      )}
      {!isWaiting && <UnknownView />}
      {content}
    </main>
  );
}

function goCommands(): Commands {
  const letter = letters(entries.value.map(({ title }) => title));
  return Object.fromEntries(
    entries.value.map((entry) => [`g ${letter.get(entry.title)}`, () => openView(firstTab(entry))]),
  );
}

function App() {
  const sheet = useSignal(false);
  const isTimeline = openTab.value?.id === TIMELINE.id;
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

if ("startsItself" in document.documentElement.dataset) render(); // else TensorBoard calls it
