/**
 * What the timeline shows. The address holds it all: `from`, `to`, `slice`, `area`, `marks`, `against`, `find`, `critical`,
 * `ranks`, `folded`, `pins`, `order`.
 *
 * Times here are ns on the common clock: that of the trace that the page is about. A source is one worker's trace; its
 * own times plus its `shift_ns` are on the common clock.
 */

import { batch, computed, effect, signal, untracked } from "@preact/signals";
import { type Failed, follow, type Loading, type Query } from "../api.ts";
import type { Address } from "../host.ts";
import { address, go, listing, placeIn, trace } from "../state.ts";
import { type Moments, shiftBetween } from "./align.ts";
import { clocks, followClocks } from "./clock_answers.ts";
import { clockShift, MOST_WORKERS } from "./clocks.ts";
import { Labels } from "./labels.ts";
import type { Brief, Find, HitsAnswer, LabelPage, Meta, MetaAnswer, SliceAnswer, SliceFacts, Step } from "./model.ts";
import {
  type Area,
  areaIn,
  areaText,
  findIn,
  findText,
  listIn,
  listText,
  numberText,
  type Range,
  rangeOf,
  type Selected,
  selectionIn,
} from "./places.ts";
import { held, roomy, startRange } from "./ranges.ts";

export interface Source {
  /** The worker's name. */
  id: string;
  place: { run: string; worker: string; span: string };
  stamp: string;
  meta: Meta;
  labels: Labels;
  /** What is added to its times to be on the common clock. */
  shift_ns: number;
}

const told = (key: string) => computed(() => address.value[key] ?? "");
const texts = {
  ranks: told("ranks"),
  slice: told("slice"),
  area: told("area"),
  find: told("find"),
  folded: told("folded"),
  pins: told("pins"),
  run: told("run"),
  worker: told("worker"),
  span: told("span"),
};

/** The worker whose clock is the common one. */
export const main = texts.worker;

/** The workers shown, in the order of the listing. */
export const shownWorkers = computed(() => {
  const chosen = new Set([main.value, ...listIn(texts.ranks.value)]);
  const listed = listing.value?.runs.find(({ name }) => name === texts.run.value)?.workers ?? [];
  const known = listed.map(({ name }) => name).filter((name) => chosen.has(name));
  return known.includes(main.value) ? known : [main.value, ...known];
});

/** Shows these workers too; none: the main one alone. */
export const showWorkers = (workers: string[]) => go({ ranks: listText(workers) }, "push");

/** What is known of each worker's trace, and of which one that is. */
const metas = signal<Record<string, { of: string; answer: MetaAnswer }>>({});
const nameOf = (worker: string) => JSON.stringify(placeOf(worker));

/** What is known of the trace that is chosen now, not of that worker's in the run or span that was chosen before. */
function metaOf(worker: string): MetaAnswer | undefined {
  const told = metas.value[worker];
  return told?.of === nameOf(worker) ? told.answer : undefined;
}

const loaded = new Map<string, Labels>();

/** Counts what came in and has to be drawn: labels and tiles. */
export const arrivals = signal(0);

/** What lies at one time, instead of what the clocks say: whoever aligns workers sets it. */
export const moments = signal<Moments>({});

/** What each worker's trace has come to that isn't ready. */
export const unready = computed(() =>
  shownWorkers.value.flatMap((worker): [string, Loading | Failed][] => {
    const answer = metaOf(worker) ?? { state: "loading", progress: null };
    return answer.state === "ready" ? [] : [[worker, answer]];
  })
);

function labelsOf(place: Source["place"], meta: Meta): Labels {
  const key = JSON.stringify([place, meta.stamp]);
  const known = loaded.get(key);
  if (known) return known;
  const page = async (page: number) => {
    const answer = await asked<LabelPage>({ place, stamp: meta.stamp }, "timeline/labels", { page: String(page) });
    return answer.state === "ready" ? answer : null;
  };
  const labels = new Labels(meta.labels, meta.categories.indexOf("Other"), page, () => arrivals.value++);
  loaded.set(key, labels);
  if (loaded.size > 64) loaded.delete(loaded.keys().next().value!);
  return labels;
}

const placeOf = (worker: string): Source["place"] => {
  const run = texts.run.value, span = texts.span.value;
  return worker === main.value ? { run, worker, span } : placeIn(run, worker, span) as Source["place"];
};
const version = computed(() => trace.value.version);

/** The traces that are drawn, in their order. */
export const sources = computed((): Source[] => {
  const own = metaOf(main.value);
  if (own?.state !== "ready") return [];
  return shownWorkers.value.flatMap((worker) => {
    const meta = metaOf(worker);
    if (meta?.state !== "ready") return [];
    const place = placeOf(worker);
    const shift_ns = shiftBetween(moments.value, worker, main.value) ??
      clockShift(meta, own, clocks.value[worker], clocks.value[main.value]);
    return [{ id: worker, place, stamp: meta.stamp, meta, labels: labelsOf(place, meta), shift_ns }];
  });
});

/** Whose clocks are asked for: those of the run, if all shown are there, one wasn't measured, and there are few enough. */
const unmeasured = computed(() => {
  const run = texts.run.value, worker = main.value, span = texts.span.value;
  const size = listing.value?.runs.find(({ name }) => name === run)?.workers.length ?? 0;
  const shown = shownWorkers.value.map(metaOf);
  const isUntold = shown.some((meta) => meta?.state === "ready" && meta.clock_error_ns === null);
  const isLoading = unready.value.some(([, { state }]) => state === "loading");
  const isAsked = shown.length > 1 && size <= MOST_WORKERS && isUntold && !isLoading;
  return isAsked ? JSON.stringify({ run, worker, span }) : "";
});

/** What decides which traces are drawn, as a text; where they lie changes nothing of it. */
export const recordings = computed(() =>
  JSON.stringify(sources.value.map(({ id, stamp, place }) => [id, stamp, place]))
);

export const sourceOf = (id: string): Source | undefined => sources.value.find((source) => source.id === id);

/** All the time that there is. */
export const whole = computed((): Range => {
  const ends = sources.value.map(({ meta, shift_ns }) => meta.window.map((time) => time + shift_ns));
  if (!ends.length) return { from: 0, to: 1 };
  const from = Math.min(...ends.map(([first]) => first!));
  return { from, to: Math.max(from + 1, ...ends.map(([, last]) => last!)) };
});

/** The steps of the main trace. */
export const steps = computed((): Step[] => sourceOf(main.value)?.meta.steps ?? []);

/** The time in sight; changes with each frame while it moves, `settled` only once it rests. */
export const viewport = signal<Range>({ from: 0, to: 1 });
export const settled = signal<Range>({ from: 0, to: 1 });

/** Where the canvas is asked to move smoothly, and what it is asked to bring in sight. */
export const destination = signal<Range | null>(null);
export const wanted = signal<{ source: string; brief: Brief } | null>(null);

export const selection = computed((): Selected | null => selectionIn(texts.slice.value, main.value));

/** What the server says of the selected slice; null while nothing is selected. */
export const detail = signal<SliceAnswer | null>(null);

export const area = computed((): Area | null => areaIn(texts.area.value, main.value));

export const find = computed((): Find | null => findIn(texts.find.value));

/** What is looked for, and the answers of the sources so far. */
export const found = signal<{ find: Find; text: string; answers: Record<string, HitsAnswer> } | null>(null);

/** The slice under the pointer: what is drawn of it, its times as exact as a pixel; then what the server says. */
export interface Hover extends Brief {
  source: string;
  /** How many slices the box stands for. */
  count: number;
  facts: SliceFacts | null;
}
export const hover = signal<Hover | null>(null);

/** What is folded otherwise than it is by default, and what is pinned: names of the tree's parts. */
export const turned = computed((): ReadonlySet<string> => new Set(listIn(texts.folded.value)));
export const pins = computed((): string[] => listIn(texts.pins.value));

export function turn(ids: string[]) {
  const next = new Set(turned.value);
  for (const id of ids) if (!next.delete(id)) next.add(id);
  go({ folded: listText([...next]) });
}

export const pin = (id: string) =>
  go({ pins: listText(pins.value.includes(id) ? pins.value.filter((one) => one !== id) : [...pins.value, id]) });

/** Selects a slice where it is; nothing without one. */
export const select = (chosen: Selected | null) =>
  go({ slice: chosen ? numberText(chosen.source, chosen.slice, main.value) : "" });

/** Selects an area; nothing without one. */
export const setArea = (chosen: Area | null) => go({ area: chosen ? areaText(chosen, main.value) : "" });

/** Looks for slices in all sources; for nothing without a wish. */
export const setFind = (wish: Find | null) => go({ find: findText(wish) });

/** Shows a range, moving there smoothly; "back" returns. */
export function zoomToRange(range: Range, changes: Address = {}) {
  writeViewport();
  const next = held(range, whole.value);
  written = rangeText(next);
  const [from, to] = written.split(" ");
  go({ from: from!, to: to!, ...changes }, "push");
  destination.value = next;
}

/** Selects a slice and brings it in sight. */
export async function jumpTo(source: string, slice: number, known?: Brief) {
  const from = sourceOf(source);
  if (!from) return;
  const brief = known ?? await asked<SliceFacts>(from, "timeline/slice", { slice: String(slice) });
  if ("state" in brief && brief.state === "failed") return select({ source, slice });
  const { start_ns, dur_ns } = brief as Brief;
  const start = start_ns + from.shift_ns;
  wanted.value = { source, brief: brief as Brief };
  zoomToRange(around(start, start + dur_ns, viewport.peek()), { slice: numberText(source, slice, main.value) });
}

/** The range that shows a slice well: as it is if it is in sight and can be made out, else moved, else zoomed. */
function around(start: number, end: number, { from, to }: Range): Range {
  const length = to - from, share = (end - start) / length;
  const isLegible = share > 0.02 && share < 0.9;
  if (isLegible && start > from + 0.02 * length && end < to - 0.02 * length) return { from, to };
  const middle = (start + end) / 2;
  const wished = isLegible ? length : Math.max((end - start) * 8, 2000);
  const next = share >= 0.9 ? roomy({ from: start, to: end }, 0.1) : null;
  return next ?? { from: middle - wished / 2, to: middle + wished / 2 };
}

/** Asks about a source until there is more than "loading"; a file that has changed makes the page start anew. */
export async function asked<T extends { state: string }>(
  { place, stamp }: Pick<Source, "place" | "stamp">,
  route: string,
  query: Query,
  stop: AbortSignal = new AbortController().signal,
): Promise<T | Failed> {
  const last: { answer: T | Failed | null } = { answer: null };
  await follow<T>(route, { ...place, stamp, ...query }, (answer) => (last.answer = answer), stop);
  const { answer } = last;
  if (answer && "code" in answer && answer.code === "changed") startAnew(place.worker);
  return answer ?? { state: "failed", code: "unreachable", message: "The question was taken back." };
}

const anew = signal(0);

/** Asks for a worker's timeline again: its file isn't the one that was shown. */
export function startAnew(worker: string) {
  const { [worker]: _, ...others } = metas.peek();
  batch(() => {
    metas.value = others;
    anew.value++;
  });
}

const rangeText = ({ from, to }: Range): string => `${Math.round(from)} ${Math.round(to)}`;

function writeViewport() {
  written = rangeText(viewport.peek());
  settled.value = viewport.peek();
  const [from, to] = written.split(" ");
  if (address.peek().from !== from || address.peek().to !== to) go({ from: from!, to: to! });
}

/** The range that the address and the canvas agree on. */
let written = "";

function followSources(): () => void {
  const running = new Map<string, AbortController>();
  const stop = effect(() => {
    const wished = new Map(
      shownWorkers.value.map((worker) => [JSON.stringify([placeOf(worker), version.value, anew.value]), worker]),
    );
    for (const [key, controller] of running) {
      if (wished.has(key)) continue;
      controller.abort();
      running.delete(key);
    }
    for (const [key, worker] of wished) {
      const place = untracked(() => placeOf(worker));
      if (running.has(key) || !place.span) continue;
      const controller = new AbortController();
      running.set(key, controller);
      const of = untracked(() => nameOf(worker));
      const tell = (answer: MetaAnswer) => (metas.value = { ...metas.peek(), [worker]: { of, answer } });
      if (untracked(() => metaOf(worker)?.state) !== "ready") tell({ state: "loading", progress: null });
      void follow<MetaAnswer>("timeline", place, tell, controller.signal);
    }
  });
  return () => {
    stop();
    for (const controller of running.values()) controller.abort();
    metas.value = {};
  };
}

function followAddress(): () => void {
  const chosen = computed(() => `${address.value.from ?? ""} ${address.value.to ?? ""}`);
  return effect(() => {
    const text = chosen.value;
    const source = sourceOf(main.value);
    if (!source || text === written) return;
    const [from, to] = text.split(" ");
    const range = rangeOf(from, to) ?? startRange(source.meta);
    batch(() => {
      destination.value = null;
      viewport.value = settled.value = held(range, untracked(() => whole.value));
    });
    written = text;
  });
}

/** Writes the viewport into the address once it rests. */
function followViewport(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = effect(() => {
    void viewport.value;
    clearTimeout(timer);
    if (sources.value.length) timer = setTimeout(writeViewport, 200); // not that of a trace that is shown no more
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/** Follows the address, and the traces, clocks and range that it names; returns what ends it. */
export function followPlace(): () => void {
  written = "";
  const ends = [followSources(), followClocks(unmeasured), followAddress(), followViewport()];
  return () => ends.forEach((end) => end());
}
