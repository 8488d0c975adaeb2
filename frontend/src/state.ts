/** What the page knows and shows. The address is the state of the user's place; all else follows from it and the server. */

import { batch, computed, effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import {
  ask,
  type EventAnswer,
  type Failed,
  follow,
  type Listing,
  type Query,
  type Span,
  type Table,
  type TraceState,
  type ViewAnswer,
  type ViewEntry,
} from "./api.ts";
import { shortened } from "./format.ts";
import { isReport } from "./report.ts";
import type { RowSlices } from "./row_slices.ts";
import { type Address, isInFront, onAddressChange, onReload, readAddress, writeAddress } from "./host.ts";

export const address = signal<Address>(readAddress());
export const listing = signal<Listing | null>(null);
export const catalogue = signal<ViewEntry[]>([]);
export const traceState = signal<TraceState | null>(null);

/** Why the listing or the catalogue didn't come the last time; what came before stays on the page. */
export const outage = signal<Failed | null>(null);

/** Counts the user's and the clock's requests to ask again for what had failed. */
const attempt = signal(0);
export const retry = () => {
  attempt.value++;
  void refresh();
};

/** Changes the place: an empty value removes its key. Pushed changes are those that "back" undoes. */
export function go(changes: Address, how: "push" | "replace" = "replace") {
  const next = Object.fromEntries(Object.entries({ ...address.value, ...changes }).filter(([, value]) => value));
  batch(() => (address.value = next));
  writeAddress(next, how);
}

/** The trace that is looked at; `version` changes when its file does. */
export const trace = computed(() => {
  const { run = "", worker = "", span = "" } = address.value;
  const workers = listing.value?.runs.find(({ name }) => name === run)?.workers ?? [];
  const file = workers.find(({ name }) => name === worker)?.spans.find(({ name }) => name === span);
  return { run, worker, span, version: file?.stamp ?? "" };
});

/** A place in the words of the menus. */
export function labelsOf({ run, worker, span }: { run: string; worker: string; span: string }) {
  const listed = listing.value?.runs.find(({ name }) => name === run);
  const spans = listed?.workers.find(({ name }) => name === worker)?.spans ?? [];
  return { run: listed?.label ?? run, worker, span: spans.find(({ name }) => name === span)?.label ?? span };
}

/** The trace's place in the words of the menus. */
export const placeLabels = computed(() => labelsOf(trace.value));

const traceKey = computed(() => JSON.stringify(trace.value));

/** The worker and span to show in a run: the wished ones where they exist, else the first. */
export function placeIn(run: string, worker = "", span = ""): Address {
  const workers = listing.value?.runs.find(({ name }) => name === run)?.workers ?? [];
  const there = workers.find(({ name }) => name === worker) ?? workers[0];
  const spans = there?.spans ?? [];
  const recording = spans.find(({ name }) => name === span) ?? spans[0];
  return { run, worker: there?.name ?? "", span: recording?.name ?? "" };
}

/** The page alone knows this one: it has no table. */
const TIMELINE: ViewEntry = {
  id: "timeline",
  title: "Timeline",
  group: "Overview",
  doc: "Every slice of the recording where and when it ran.",
  variant_of: null,
  variant: "",
  part_of: null,
  detail_of: null,
  within: "moments",
  scope: "recording",
  hint: "",
  parameters: [],
  columns: [],
  key: [],
  weight: null,
  charts: [],
  parent: null,
  flames: [],
  curves: [],
  series: [],
  marks: null,
  matrix: null,
  bins: null,
};

/** The views in the list. A report has no server that the timeline could ask for what it draws. */
export const listedViews = computed(() => {
  const listed = catalogue.value.filter(({ variant_of, part_of, detail_of }) => !variant_of && !part_of && !detail_of);
  return isReport || !listed.length ? listed : [listed[0]!, TIMELINE, ...listed.slice(1)];
});

/** The view in the list that is open, and the one that is drawn: itself, or a variant of it. */
export const openEntry = computed(() =>
  listedViews.value.find(({ id }) => id === address.value.view) ?? listedViews.value[0]
);
export const drawnEntry = computed(() => {
  const variant = catalogue.value.find(({ id }) => id === address.value.group);
  return variant && variant.variant_of === openEntry.value?.id ? variant : openEntry.value;
});

/** The views that are drawn on the page of a listed one: itself, then its parts. */
export const pageOf = (listed: ViewEntry): ViewEntry[] => [
  listed,
  ...catalogue.value.filter(({ part_of }) => part_of === listed.id),
];

/** The choices made for the parameters that a view takes; all views of a page share them by their names. */
export function parametersOf(entry: ViewEntry): Query {
  const chosen = entry.parameters.map(({ name, choices }) => {
    const value = address.value[`set.${name}`] ?? "";
    return [name, choices.length && !choices.includes(value) ? "" : value] as const;
  });
  return Object.fromEntries(chosen.filter(([, value]) => value));
}

/** The times to which all parts of the page that know times are narrowed; null for the whole recording. */
export const zoom = computed(() => {
  const [from, to] = ["from_ns", "to_ns"].map((name) => address.value[`set.${name}`]);
  return from && to ? { from: Number(from), to: Number(to) } : null;
});

/** Sets parameters of the page's views; other rows come then, so none is chosen any more. */
export function choose(parameters: Query) {
  const gone = Object.keys(address.value).filter((key) => /(^|\.)(row|open)$/.test(key)).map((key) => [key, ""]);
  const chosen = Object.entries(parameters).map(([name, value]) => [`set.${name}`, value]);
  go(Object.fromEntries([...gone, ...chosen]), "push");
}

/** Narrows the page to some time, such as one that was dragged over in a curve; without ends to the whole again. */
export function zoomTo(ends: { from: number; to: number } | null) {
  const [from, to] = ends ? [ends.from, ends.to].map((time) => String(Math.round(time))) : ["", ""];
  choose({ from_ns: from!, to_ns: to! });
}

const PLACE = ["run", "worker", "span", "side", "base_run", "base_worker", "base_span", "noise"];
const ARRANGED = ["marks", "against", "pins", "order"]; // on the timeline, for as long as the trace is open
const LASTING = new Set([...PLACE, ...ARRANGED]);

/** Opens a view afresh; what was filtered, sorted and chosen belongs to the view before. */
export function openView(id: string, filter = "") {
  const forgotten = Object.keys(address.value).filter((key) => !LASTING.has(key)).map((key) => [key, ""]);
  go({ ...Object.fromEntries(forgotten), view: id, filter }, "push");
}

export const viewTitle = (id: string): string =>
  [...catalogue.value, TIMELINE].find((entry) => entry.id === id)?.title ?? id;

/** Opens the page on which a view stands, be it a part or a variant of another, with its rows filtered. */
export function openRows(id: string, filter: string) {
  const entry = catalogue.value.find((each) => each.id === id);
  openView(entry?.part_of ?? entry?.variant_of ?? id, entry?.part_of ? "" : filter);
  if (entry?.part_of) go({ [`${id}.filter`]: filter });
  else if (entry?.variant_of) go({ group: id });
}

const ROOM = 0.15; // of a time that is shown at both of its sides

/** The recording of another worker that is of the same span as the shown one, or in the same place among its own. */
export function besideIn(worker: string): Address {
  const { run, worker: shown, span } = trace.peek();
  const workers = listing.peek()?.runs.find(({ name }) => name === run)?.workers ?? [];
  const spans = (name: string) => workers.find((one) => one.name === name)?.spans ?? [];
  const nth = spans(shown).findIndex(({ name }) => name === span);
  const same = spans(worker).find(({ name }) => name === span) ?? spans(worker)[nth];
  return placeIn(run, worker, same?.name);
}

/** Opens the timeline with the slices that are found in sight, and the time and the worker that they are about. */
export function openTimeline({ find, range, gaps, critical, worker }: RowSlices) {
  if (worker && worker !== trace.peek().worker) openTrace(besideIn(worker));
  openView("timeline");
  const room = range ? Math.max(50, (range.to - range.from) * ROOM) : 0;
  const time = range && { from: String(Math.round(range.from - room)), to: String(Math.round(range.to + room)) };
  const shown = { ...(gaps !== undefined && { panel: "gaps", gaps }), ...(critical && { critical }) };
  go({ ...(find && { find: JSON.stringify(find) }), ...time, ...shown });
}

const OF_TRACE =
  /^set\.(from|to)_ns$|^(from|to|slice|area|marks|against|ranks|align|folded|pins|order)$|(^|\.)(row|open)$/;

/** Goes to another trace: filters and orders stay; what was opened, and times, belong to the trace before. */
export function openTrace(place: Address) {
  const gone = Object.keys(address.value).filter((key) => OF_TRACE.test(key));
  go({ ...Object.fromEntries(gone.map((key) => [key, ""])), ...place }, "push");
}

const spanSteps = signal<Record<string, string>>({});

/** A span as its menu names it: with its steps once they are known. */
export function spanLabel(run: string, worker: string, { name, label }: Span): string {
  const steps = spanSteps.value[JSON.stringify([run, worker, name])];
  return steps ? `${label === name ? shortened(label, 8) : label} · ${steps}` : label;
}

function rememberSteps(answer: TraceState) {
  if (answer.state !== "ready" || !answer.steps.length) return;
  const { run, worker, span } = trace.peek();
  const [first, last] = [answer.steps[0]!, answer.steps.at(-1)!];
  if (!/^\d+$/.test(first)) return; // without steps there is one row for the whole, called "all"
  const steps = first === last ? `step ${first}` : `steps ${first}–${last}`;
  spanSteps.value = { ...spanSteps.peek(), [JSON.stringify([run, worker, span])]: steps };
}

/** Whether what is shown is of the trace itself: views of a run need its summaries alone, and must not wait for it. */
const isOfTrace = computed(() => openEntry.value?.scope === "recording");

function followTrace() {
  let stop = new AbortController();
  let before = "";
  effect(() => {
    const key = traceKey.value;
    void attempt.value;
    stop.abort();
    stop = new AbortController();
    if (key !== before) traceState.value = null;
    before = key;
    const { run, worker, span } = trace.peek();
    if (!span || !isOfTrace.value) return;
    void follow<TraceState>("state", { run, worker, span }, (answer) => {
      traceState.value = answer;
      rememberSteps(answer);
    }, stop.signal);
  });
}

/** Asks for the listing, and for the catalogue while there is none; keeps the user's place. */
async function refresh() {
  const [runs, views] = await Promise.all([
    ask<Listing>("runs", {}),
    catalogue.value.length ? catalogue.value : ask<ViewEntry[]>("views", {}),
  ]);
  const failure = "runs" in runs ? (Array.isArray(views) ? null : views) : runs;
  batch(() => {
    if (outage.value && !failure) attempt.value++;
    outage.value = failure;
    if (Array.isArray(views)) catalogue.value = views;
    if ("runs" in runs && JSON.stringify(runs) !== JSON.stringify(listing.value)) listing.value = runs;
  });
  const { run, worker, span } = address.value;
  if (run && worker && span) return;
  const listed = listing.value?.runs ?? [];
  const shown = listed.find(({ name }) => name === run) ?? listed[0];
  if (shown) go(placeIn(shown.name, worker, span));
}

const POLL = 5000;

async function poll() {
  if (document.visibilityState === "visible" && isInFront()) await refresh();
  setTimeout(poll, listing.value?.scanning ? POLL / 10 : POLL);
}

/** Begins to follow the address, the listing and the selected trace. */
export function start() {
  onAddressChange(() => (address.value = readAddress()));
  onReload(retry);
  followTrace();
  void poll();
}

type Answer = ViewAnswer | EventAnswer;

const answers = new Map<string, Answer>();
const KEPT = 40;

function remember(key: string, answer: Answer) {
  answers.set(key, answer);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value!);
}

interface Following {
  listeners: Set<(answer: Answer) => void>;
  latest: Answer | null;
  stop: AbortController;
}
const followed = new Map<string, Following>();

function begin(key: string, route: string, query: Query): Following {
  const following: Following = { listeners: new Set(), latest: null, stop: new AbortController() };
  followed.set(key, following);
  void follow<Answer>(route, query, (answer) => {
    following.latest = answer;
    if (answer.state === "ready" || answer.state === "missing") remember(key, answer);
    if (answer.state !== "loading") followed.delete(key);
    for (const tell of following.listeners) tell(answer);
  }, following.stop.signal);
  return following;
}

/** Tells the answers to a question until it is told to stop; one asks for all who want to know the same. */
function listen(key: string, route: string, query: Query, tell: (answer: Answer) => void): () => void {
  const following = followed.get(key) ?? begin(key, route, query);
  following.listeners.add(tell);
  if (following.latest) tell(following.latest);
  return () => {
    following.listeners.delete(tell);
    if (following.listeners.size) return;
    following.stop.abort();
    if (followed.get(key) === following) followed.delete(key);
  };
}

/** Where a trace is, and which state of its file is meant. */
export interface TracePlace {
  run: string;
  worker: string;
  span: string;
  version: string;
}

/** The answer about a trace, asked for until it is there; null before the first. */
function useFollowed<T extends Answer>(
  route: "view" | "compare" | "event",
  question: Query,
  version = "",
  place: TracePlace = trace.value,
): T | null {
  const { run, worker, span } = place;
  const query = { ...question, run, worker, span };
  const key = JSON.stringify([route, place, version, query]);
  const [latest, tell] = useState<{ key: string; answer: T | Failed } | null>(null);
  const asked = attempt.value;
  useEffect(() => {
    if (!span || answers.has(key)) return;
    return listen(key, route, query, (answer) => tell({ key, answer: answer as T | Failed }));
  }, [key, asked]);
  return (answers.get(key) ?? (latest?.key === key ? latest.answer : null)) as T | null;
}

export interface Shown {
  /** The last answer to this very question; null before the first. */
  answer: ViewAnswer | null;
  /** The table to show, dimmed, until the answer is there: the same view of what was selected before. */
  earlier: Table | null;
}

/** The view's answer for a trace, which is the selected one unless another is named. */
export const useAnswer = (view: string, parameters: Query = {}, place?: TracePlace): Shown =>
  useShown(view, useFollowed<ViewAnswer>("view", { view, ...parameters }, "", place));

/** The view of the selected trace beside that of another; `version` changes when the other's file does. */
export const useComparison = (view: string, question: Query, version: string): Shown =>
  useShown(view, useFollowed<ViewAnswer>("compare", { view, ...question }, version));

function useShown(view: string, answer: ViewAnswer | null): Shown {
  const earlier = useRef<Table | null>(null);
  if (answer?.state === "ready") earlier.current = answer;
  return { answer, earlier: earlier.current?.view === view ? earlier.current : null };
}

/** The event of a trace, the selected one unless another is named, that begins at this byte of its text. */
export const useEvent = (offset: number, place?: TracePlace): EventAnswer | null =>
  useFollowed<EventAnswer>("event", { offset: String(offset) }, "", place);
