/** The page's state. The address holds what the user chose; everything else follows from it and the server. */

import { batch, computed, effect, signal } from "@preact/signals";
import { fetchAnswer } from "../api/client.ts";
import { isReport } from "../api/report.ts";
import { type RowSlices, slicesOfRow } from "../api/row_slices.ts";
import {
  type Failed,
  type Listing,
  type Query,
  type ReadyState,
  type Slices,
  type Span,
  type TraceState,
  type ViewEntry,
} from "../api/types.ts";
import { type Address, isInFront, onAddressChange, onReload, readAddress, writeAddress } from "./host.ts";
import { type ApiRequest, attempt, isAnswered, resources, retryFailed } from "./resource.ts";
import { editDistance } from "../format/edit_distance.ts";
import { addKernelLabels, resetKernelLabels } from "../format/readable_names.ts";
import { matrixUnits, TENSOR_CORES } from "../format/vendor_words.ts";
import { setTitles, shorten, type Value } from "../format/numbers.ts";
import { pageView } from "../api/pictures.ts";
import { entriesOf, type Entry, tabOf } from "./entries.ts";
import { whyOf } from "./why.ts";

export const address = signal<Address>(readAddress());
export const listing = signal<Listing | null>(null);
export const catalogue = signal<ViewEntry[]>([]);

/** Why the last request for the listing or the catalogue failed; the previous ones stay on the page. */
export const outage = signal<Failed | null>(null);

/** Retries failed requests, and refreshes the listing and the state of the trace. */
export const retry = () => {
  retryFailed();
  void refresh();
};

/** Changes the address: an empty value removes its key. "Back" undoes pushed changes. */
export function go(changes: Address, how: "push" | "replace" = "replace") {
  const next = Object.fromEntries(Object.entries({ ...address.value, ...changes }).filter(([, value]) => value));
  batch(() => (address.value = next));
  writeAddress(next, how);
}

const withName = <T extends { name: string }>(items: T[] = [], name?: string) => items.find((one) => one.name === name);

/** What the listing has of a run, of its workers, and of a recording. A job that left no trace has no workers. */
export const listedRun = (run: string | undefined) => withName(listing.value?.runs, run);
export const workersOf = (run: string | undefined) => listedRun(run)?.workers ?? [];
export const listedSpan = (run: string, worker: string, span: string) =>
  withName(withName(workersOf(run), worker)?.spans, span);

/** The trace that is looked at, with the chosen capture of its graphs; `version` changes when its file does. */
export const trace = computed(() => {
  const { run = "", worker = "", span = "", capture } = address.value;
  return { run, worker, span, ...(capture && { capture }), version: listedSpan(run, worker, span)?.stamp ?? "" };
});

/** The labels of a place, as in the menus. */
export const labelsOf = ({ run, worker, span }: { run: string; worker: string; span: string }) => ({
  run: listedRun(run)?.label ?? run,
  worker,
  span: listedSpan(run, worker, span)?.label ?? span,
});

/** The shown trace's labels, as in the menus. */
export const placeLabels = computed(() => labelsOf(trace.value));

const traceKey = computed(() => JSON.stringify(trace.value));

/** The worker and span to show in a run: the given ones where they exist, else the first worker's newest span. */
export function placeIn(run: string, worker = "", span = ""): Address {
  const workers = workersOf(run);
  const there = withName(workers, worker) ?? workers[0];
  return { run, worker: there?.name ?? "", span: withName(there?.spans, span)?.name ?? there?.newest ?? "" };
}

/** The timeline has no table, so it is not in the server's catalogue. */
export const TIMELINE = pageView(
  "timeline",
  { title: "Timeline", question: "What ran when, and why then?", section: "trace", figure: null },
  "Every slice of the recording, on its track and at its time.",
);

/** It is of two traces, so it is not in the server's catalogue either. */
export const STEP_DIFFERENCE = pageView(
  "step_difference",
  {
    title: "Step difference",
    question: "Why does a step take longer than in the base?",
    section: "trace",
    figure: null,
  },
  "What the difference of two steps consists of, also where other code ran.",
);

/** It is of all runs. */
export const HISTORY: ViewEntry = {
  ...pageView(
    "history",
    { title: "History", question: "Since which run does a step take longer?", section: "runs", figure: null },
    "The runs of this job over time.",
  ),
  scope: "run",
};

const MANY_RUNS = 12; // fewer can't show a change

const whySource = whyOf(computed(() => (isReport ? "" : address.value.run ?? "")));

/** Why the job of the shown run hangs or ended; null if no Tracer has recorded into it. */
export const { why, whyHint } = whySource;

/** The page of that. */
export const WHY = "why";

const whyView = computed((): ViewEntry => {
  const title = why.value?.title ?? "Last minutes";
  const entry = { title, question: "What did each rank do last?", section: "trace", figure: null };
  return pageView(WHY, entry, "What each rank did last, and why the job waits or ended.");
});

/** Every view with those that the page alone knows. */
const allViews = computed(() => [...catalogue.value, TIMELINE, STEP_DIFFERENCE, HISTORY, whyView.value]);

/** Whether two traces with device work are compared, or somebody asks for what that shows. */
const hasStepDifference = computed(() =>
  address.value.view === STEP_DIFFERENCE.id || Boolean(address.value.base_run && !("kernels" in missing.value))
);

/** Whether the shown run is a job that left no trace, or hasn't yet. */
export const isWithoutTrace = computed(() => listedRun(address.value.run)?.workers.length === 0);

/** The entries of the panel. A report has no server that the page's own ones could ask for what they draw. */
export const entries = computed(() => {
  if (isWithoutTrace.value) return entriesOf([whyView.value]);
  const [first, ...others] = entriesOf(catalogue.value);
  if (!first || isReport) return first ? [first, ...others] : [];
  const isOpen = address.value.view === HISTORY.id, runs = listing.value?.runs.length ?? 0;
  const own = [...(why.value ? [whyView.value] : []), TIMELINE, ...(hasStepDifference.value ? [STEP_DIFFERENCE] : [])];
  return [first, ...entriesOf(own), ...others, ...(isOpen || runs >= MANY_RUNS ? entriesOf([HISTORY]) : [])];
});

/** The views below a tab. */
const partsOf = (tab: string) => catalogue.value.filter(({ place }) => place.kind === "part" && place.of === tab);

/** The sentence above a tab's view. */
export const leadOf = ({ id }: ViewEntry): ViewEntry | undefined =>
  catalogue.value.find(({ place }) => place.kind === "lead" && place.of === id);

/** The views in an opened row of a tab. */
export const detailsOf = (tab: string): ViewEntry[] =>
  catalogue.value.filter(({ place }) => place.kind === "detail" && [place.of, ...place.also].includes(tab));

/** The views of the memory snapshot next to the trace in an opened row of a tab. */
export const snapshotDetailsOf = (tab: string): ViewEntry[] =>
  catalogue.value.filter(({ in_rows_of_trace }) => in_rows_of_trace?.includes(tab));

export const viewEntry = (id: string): ViewEntry | undefined => catalogue.value.find((entry) => entry.id === id);

/** The views of findings, that of the recording first. */
export const findingViews = computed(() => catalogue.value.filter(({ level }) => level));

const MANY_RANKS = 64; // whose summaries take a while: nobody reads them before a visit

/** Those that the badge counts: of a run with many ranks, only what is wrong with the trace. */
export const countedFindings = computed(() =>
  findingViews.value.filter(({ scope }) => scope === "recording" || workersOf(trace.value.run).length <= MANY_RANKS)
);

/** The view whose rows a panel of the timeline lists. */
export const viewOfPanel = (panel: NonNullable<Slices["panel"]>): ViewEntry | undefined =>
  catalogue.value.find(({ slices }) => slices?.panel === panel);

/** The tab of the critical path across ranks. */
export const crossRankPathView = computed(() =>
  catalogue.value.find(({ shows_path, scope, place }) => shows_path && scope !== "recording" && place.kind === "tab")
);

/** The open tab. */
export const openTab = computed((): ViewEntry | undefined => {
  const tabs = entries.value.flatMap((entry) => entry.tabs), shown = tabIn(address.value);
  return tabs.find(({ id }) => id === shown) ?? tabs[0];
});

/** Its entry. */
export const openEntry = computed(() => entries.value.find(({ title }) => title === openTab.value?.entry.title));

const spelling = (title: string) => title.toLowerCase().replaceAll(/[\s_-]+/g, " ").trim();

/** The tab that an address names: by its view, by a view on its page, or by the title of an entry. */
function tabIn({ view = "", group = "" }: Address): string {
  const named = tabOf(catalogue.value, viewEntry(group) ? group : view);
  const titled = entries.value.find(({ title }) => spelling(title) === spelling(view));
  return named?.id ?? (titled && view !== TIMELINE.id ? firstTab(titled) : view);
}

/** Replaces the address of a view that is drawn with another one, or an earlier version's, by that of its tab. */
function normalizeAddress() {
  if (!catalogue.value.length) return;
  const { view = "", group } = address.value, tab = tabIn(address.value);
  if (group || tab !== view) go({ view: tab, group: "" });
}

/** The view that the address names, if there is none of that name, and the most similar one that there is. */
export const unknownView = computed(() => {
  const view = tabIn(address.value);
  if (!view || allViews.value.some(({ id }) => id === view) || !catalogue.value.length) return null;
  return { view, nearest: nearestTo(view, allViews.value, ({ id }) => id)! };
});

/** The item with the most similar name. */
function nearestTo<T>(name: string, items: T[], nameOf: (item: T) => string): T | undefined {
  const distances = items.map((item) => editDistance(name, nameOf(item)));
  return items[distances.indexOf(Math.min(...distances))];
}

/** What the address names although neither the listing nor the server has it, and what to open instead. */
export const unknownPlace = computed(() => {
  const { run = "", worker = "", span = "" } = address.value, { runs = [], scanning = true } = listing.value ?? {};
  if (scanning || !run || (worker && span && traceState.value?.state !== "failed")) return null;
  if (!listedRun(run)) {
    const nearest = nearestTo(run, runs, ({ name }) => name);
    return { kind: "run", name: run, nearest: nearest && placeIn(nearest.name), label: nearest?.label };
  }
  const workers = workersOf(run);
  if (worker && !withName(workers, worker)) {
    const nearest = nearestTo(worker, workers, ({ name }) => name);
    return { kind: "worker", name: worker, nearest: placeIn(run, nearest?.name), label: nearest?.name };
  }
  if (!worker || !span || listedSpan(run, worker, span)) return null;
  return { kind: "span", name: span, nearest: placeIn(run, worker), label: "the newest span" };
});

/** Completes the address: without a run the newest one, without a worker its first, without a span the newest. */
function completePlace() {
  const { run = "", worker = "", span = "" } = address.value;
  const shown = run || listing.value?.newest;
  if ((run && worker && span) || !listedRun(shown ?? undefined) || unknownPlace.value) return;
  const place = placeIn(shown!, worker, span);
  if (place.run !== run || place.worker !== worker || place.span !== span) go(place);
}

/** The views on the page of a tab: itself, then its parts. */
export const pageOf = (tab: ViewEntry): ViewEntry[] => [tab, ...partsOf(tab.id)];

/** The values of a view's parameters; the views of a page share them by name. */
export function parametersOf(entry: ViewEntry): Query {
  const chosen = entry.parameters.map(({ name, choices }) => {
    const value = address.value[`set.${name}`] ?? "";
    return [name, choices.length && !choices.includes(value) ? "" : value] as const;
  });
  if (entry.takes_steps) chosen.push(["phase", address.value["set.phase"] ?? ""]);
  return Object.fromEntries(chosen.filter(([, value]) => value));
}

/** The time range that the page is narrowed to; null for the whole recording. */
export const zoom = computed(() => {
  const [from, to] = ["from_ns", "to_ns"].map((name) => address.value[`set.${name}`]);
  return from && to ? { from: Number(from), to: Number(to) } : null;
});

/** Sets parameters of the page's views and clears the selected rows. */
export function choose(parameters: Query) {
  const cleared = Object.keys(address.value).filter((key) => /(^|\.)(row|open)$/.test(key)).map((key) => [key, ""]);
  const chosen = Object.entries(parameters).map(([name, value]) => [`set.${name}`, value]);
  go(Object.fromEntries([...cleared, ...chosen]), "push");
}

/** Narrows the page to a time range, such as one dragged over in a curve; null shows the whole recording. */
export function zoomTo(ends: { from: number; to: number } | null) {
  const [from, to] = ends ? [ends.from, ends.to].map((time) => String(Math.round(time))) : ["", ""];
  choose({ from_ns: from!, to_ns: to! });
}

const PLACE_KEYS = [
  "run",
  "worker",
  "span",
  "capture",
  "side",
  "base_run",
  "base_worker",
  "base_span",
  "base_capture",
  "noise",
];
const ARRANGEMENT_KEYS = ["marks", "against", "pins", "order"]; // on the timeline, for as long as the trace is open
const PERSISTENT_KEYS = new Set([...PLACE_KEYS, ...ARRANGEMENT_KEYS]);

/** Opens the tab of a view, with its rows filtered, without the filter, order and selection of the previous one. */
export function openView(id: string, filter = "") {
  const cleared = Object.keys(address.value).filter((key) => !PERSISTENT_KEYS.has(key)).map((key) => [key, ""]);
  const view = tabOf(catalogue.value, id)?.id ?? id;
  go({ ...Object.fromEntries(cleared), view, [view === id ? "filter" : `${id}.filter`]: filter }, "push");
}

/** Opens another tab of the entry; each tab keeps its filter, order and selection. */
export function switchTab(id: string) {
  const shown = openTab.peek()!.id;
  if (id === shown) return;
  const moved = Object.entries(address.value).map(([key, value]) => {
    if (PERSISTENT_KEYS.has(key) || key === "view") return [key, value];
    if (key.startsWith(`${id}.`)) return [key.slice(id.length + 1), value];
    return [key.includes(".") ? key : `${shown}.${key}`, value];
  });
  const cleared = Object.keys(address.value).map((key) => [key, ""]);
  go({ ...Object.fromEntries(cleared), ...Object.fromEntries(moved), view: id }, "push");
}

/** What a view is called in links to it. */
export const viewTitle = (id: string): string => allViews.value.find((one) => one.id === id)?.page_title ?? id;

const ROOM = 0.15; // margin at each side, as a share of the time

/** The recording of another worker of the same span as the shown one, or at the same position. */
export function sameSpanIn(worker: string): Address {
  const { run, worker: shown, span } = trace.peek();
  const spans = (name: string) => withName(workersOf(run), name)?.spans ?? [];
  const nth = spans(shown).findIndex(({ name }) => name === span);
  const same = withName(spans(worker), span) ?? spans(worker)[nth];
  return placeIn(run, worker, same?.name);
}

/** What to show in the timeline for a row of a view; null if there is nothing. */
export function slicesIn(view: string, row: (column: string) => Value): RowSlices | null {
  const entry = viewEntry(view);
  return entry ? slicesOfRow(entry, row, catalogue.value, address.value["set.phase"]) : null;
}

/** Opens the timeline at the slices' time and worker, and searches for the slices. */
export function openTimeline({ find, range, gaps, critical, worker }: RowSlices) {
  if (worker && worker !== trace.peek().worker) openTrace(sameSpanIn(worker));
  openView(TIMELINE.id);
  const room = range ? Math.max(50, (range.to - range.from) * ROOM) : 0;
  const time = range && { from: String(Math.round(range.from - room)), to: String(Math.round(range.to + room)) };
  const shown = { ...(gaps !== undefined && { panel: "gaps", gaps }), ...(critical && { critical }) };
  go({ ...(find && { find: JSON.stringify(find) }), ...time, ...shown });
}

const TRACE_KEYS =
  /^set\.(from|to)_ns$|^(from|to|capture|slice|gap|area|marks|against|ranks|align|folded|pins|order)$|(^|\.)(row|open)$/;

/** Opens another trace: filters and orders stay; opened rows and times are cleared. */
export function openTrace(place: Address) {
  const cleared = Object.keys(address.value).filter((key) => TRACE_KEYS.test(key));
  go({ ...Object.fromEntries(cleared.map((key) => [key, ""])), ...place }, "push");
}

const spanSteps = signal<Record<string, string>>({});

const keyOf = ({ run, worker, span }: Address) => JSON.stringify([run, worker, span]);

/** A span's label, with its steps once they are loaded. */
export function spanLabel(run: string, worker: string, { name, label }: Span): string {
  const steps = spanSteps.value[keyOf({ run, worker, span: name })];
  return steps ? `${label === name ? shorten(label, 8) : label} · ${steps}` : label;
}

/** Goes on with the first process of a file that turned out to hold several: they are a run of their own. */
async function follow(moved: Address, query: Query) {
  await refresh();
  if (keyOf(address.value) === keyOf(query)) go(moved);
}

const MOST_STATES = 16;

/** The states of the traces that were looked at last, by their place and version. */
const knownStates = signal<ReadonlyMap<string, { run: string; state: ReadyState }>>(new Map());

function remember(answer: TraceState, { query }: ApiRequest) {
  if (answer.state !== "ready") return;
  const key = traceKey.peek(), others = [...knownStates.peek()].filter(([known]) => known !== key);
  knownStates.value = new Map([...others, [key, { run: query.run!, state: answer }] as const].slice(-MOST_STATES));
  if (answer.moved) void follow(answer.moved, query);
  addKernelLabels(answer.labels);
  if (!answer.steps.length) return;
  const [first, last] = [answer.steps[0]!, answer.steps.at(-1)!];
  if (!/^\d+$/.test(first)) return; // without steps there is one row for the whole, called "all"
  const steps = `${answer.step_noun}${first === last ? "" : "s"} ${first}${first === last ? "" : `–${last}`}`;
  spanSteps.value = { ...spanSteps.peek(), [keyOf(query)]: steps };
}

/** Whether the page is about the trace itself. */
const isTraceView = computed(() => openTab.value?.scope === "recording");

/**
 * Asks for the state of the selected trace. A page of the whole run needs the summaries alone and doesn't wait for the
 * trace: its state is requested after that page's own answers, for the panel.
 */
const traceStates = resources<TraceState>(() => {
  const { version: _, ...query } = trace.value;
  if (!query.worker || !query.span) return {};
  const isWanted = isTraceView.value || (!knownStates.value.has(traceKey.value) && isAnswered.value);
  return { [traceKey.value]: isWanted ? { route: "state", query, version: String(attempt.value) } : null };
}, { onAnswer: remember });

/** The state of the selected trace; null before the first answer. */
export const traceState = computed((): TraceState | null =>
  traceStates.answers.value[traceKey.value] ?? knownStates.value.get(traceKey.value)?.state ?? null
);

const readyState = computed(() => traceState.value?.state === "ready" ? traceState.value : null);

/** The program that wrote the trace, if it wasn't torch.profiler. */
export const foreignWriter = computed(() => readyState.value?.foreign_writer);

/** The memory snapshot next to the trace. */
export const snapshotPlace = computed(() => {
  const place = readyState.value?.snapshot;
  return place && { ...place, version: listedSpan(place.run, place.worker, place.span)?.stamp ?? "" };
});

/** Whether the trace lacks a view that the memory snapshot next to it has. */
export const isInSnapshot = (id: string): boolean =>
  snapshotPlace.value !== undefined && id in missing.value && Boolean(viewEntry(id)?.is_of_snapshot);

/** What a step of the trace is called; where none is marked, the recording is the only one. */
export const stepWord = computed(() =>
  readyState.value?.steps[0] === "all" ? "recording" : readyState.value?.step_noun ?? "step"
);

/** Whether what the selected trace lacks isn't known yet. */
export const isFindingViews = computed((): boolean => {
  const { run, worker, span } = trace.value;
  return Boolean(run && worker && span) && (traceState.value === null || traceState.value.state === "loading");
});

const NOTHING: Record<string, string> = {};

/** What would record the views that the selected trace lacks; nothing until that is known. */
export const missing = computed((): Record<string, string> => readyState.value?.missing ?? NOTHING);

/** The same for the panel, which until then lists what another recording of the run has: most have the same. */
export const missingInPanel = computed((): Record<string, string> => {
  if (!isFindingViews.value) return missing.value;
  const ofRun = [...knownStates.value.values()].filter(({ run }) => run === trace.value.run);
  return ofRun.at(-1)?.state.missing ?? NOTHING;
});

/** What the page is about: what it shows is never carried over to another subject. */
export const subject = computed((): string => {
  const { run, worker, span } = trace.value, { base_run, base_worker, base_span } = address.value;
  const scope = openTab.value?.scope;
  const shown = scope === "run" ? [run] : scope === "span" ? [run, span] : [run, worker, span];
  return JSON.stringify([shown, base_run, base_worker, base_span]);
});

/** The tab that opens with an entry: the first one with data. */
export const firstTab = ({ tabs }: Entry): string => (tabs.find(({ id }) => !(id in missing.value)) ?? tabs[0]!).id;

/** Fetches the listing, and the catalogue once; the user's place stays. */
async function refresh() {
  const [runs, views] = await Promise.all([
    fetchAnswer<Listing>("runs", {}),
    catalogue.value.length ? catalogue.value : fetchAnswer<ViewEntry[]>("views", {}),
  ]);
  const failure = "runs" in runs ? (Array.isArray(views) ? null : views) : runs;
  batch(() => {
    if (outage.value && !failure) retryFailed();
    outage.value = failure;
    if (Array.isArray(views)) {
      setTitles(views.flatMap(({ columns }) => columns));
      catalogue.value = views;
    }
    if ("runs" in runs && JSON.stringify(runs) !== JSON.stringify(listing.value)) listing.value = runs;
  });
}

const POLL = 5000;

async function pollListing() {
  if (document.visibilityState === "visible" && isInFront()) await refresh();
  setTimeout(pollListing, listing.value?.scanning ? POLL / 10 : POLL);
}

/** Starts following the address, the listing and the selected trace. */
export function start() {
  onAddressChange(() => (address.value = readAddress()));
  onReload(retry);
  effect(() => resetKernelLabels(knownStates.peek().get(traceKey.value)?.state.labels));
  traceStates.start();
  whySource.start();
  effect(() => {
    matrixUnits.value = readyState.value?.matrix_units ?? TENSOR_CORES;
  });
  effect(normalizeAddress);
  effect(completePlace);
  void pollListing();
}
