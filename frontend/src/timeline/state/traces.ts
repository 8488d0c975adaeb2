/** The traces that the timeline shows, one per worker, with the server's answers. The address names the workers. */

import { computed, signal } from "@preact/signals";
import type { LabelPage, Meta, MetaAnswer } from "../../api/timeline_types.ts";
import type { Failed, Loading, Query } from "../../api/types.ts";
import { type ApiRequest, load, resources } from "../../app/resource.ts";
import { address, go, placeIn, trace, workersOf } from "../../app/router.ts";
import { Labels } from "../model/labels.ts";
import { listIn, listText } from "../model/url_codec.ts";

export interface Trace {
  /** The worker's name. */
  id: string;
  place: { run: string; worker: string; span: string; capture?: string };
  stamp: string;
  meta: Meta;
  labels: Labels;
}

/** What the address holds under a key. */
export const addressText = (key: string) => computed(() => address.value[key] ?? "");

const workersText = addressText("ranks"), run = addressText("run"), span = addressText("span");

/** The worker whose clock is the common one. */
export const main = addressText("worker");

/** The workers of the run, in the order of the listing. */
export const listedWorkers = computed(() => workersOf(run.value).map(({ name }) => name));

/** The workers shown, in the order of the listing. */
export const shownWorkers = computed(() => {
  const chosen = new Set([main.value, ...listIn(workersText.value)]);
  const listed = listedWorkers.value.filter((name) => chosen.has(name));
  return listed.includes(main.value) ? listed : [main.value, ...listed];
});

/** Shows these workers too; none: the main one alone. */
export const showWorkers = (workers: string[]) => go({ ranks: listText(workers) }, "push");

function placeOf(worker: string): Trace["place"] {
  if (worker === main.value) {
    const { version: _, ...place } = trace.value;
    return place;
  }
  return placeIn(run.value, worker, span.value) as Trace["place"];
}

/** How often each worker's trace was reloaded because its file changed. */
const reloads = signal<Record<string, number>>({});

export function reload(worker: string) {
  reloads.value = { ...reloads.peek(), [worker]: (reloads.peek()[worker] ?? 0) + 1 };
}

const nameOf = (worker: string) => JSON.stringify([placeOf(worker), reloads.value[worker] ?? 0]);

export const metas = resources<MetaAnswer>(() =>
  Object.fromEntries(shownWorkers.value.map((worker) => {
    const query = placeOf(worker);
    return [nameOf(worker), query.span ? { route: "timeline", query, version: trace.value.version } : null];
  }))
);

const LOADING: Loading = { state: "loading", progress: null };

export const metaOf = (worker: string): MetaAnswer => metas.answers.value[nameOf(worker)] ?? LOADING;

/** The workers whose trace isn't ready, with its state. */
export const unready = computed(() =>
  shownWorkers.value.flatMap((worker): [string, Loading | Failed][] => {
    const answer = metaOf(worker);
    return answer.state === "ready" ? [] : [[worker, answer]];
  })
);

/** Counts the labels and tiles that were loaded and have to be drawn. */
export const arrivals = signal(0);

const MOST_LABELS = 64;
const labels = new Map<string, Labels>();

function labelsOf(place: Trace["place"], meta: Meta): Labels {
  const key = JSON.stringify([place, meta.stamp]);
  const loadPage = async (page: number) => {
    const answer = await loadFrom<LabelPage>({ place, stamp: meta.stamp }, "timeline/labels", { page: String(page) });
    return answer.state === "ready" ? answer : null;
  };
  const ofTrace = labels.get(key) ??
    new Labels(meta.labels, loadPage, () => arrivals.value++);
  labels.set(key, ofTrace);
  if (labels.size > MOST_LABELS) labels.delete(labels.keys().next().value!);
  void ofTrace.requestAll();
  return ofTrace;
}

/** The traces that are drawn, in their order; none before the main one is loaded. */
export const traces = computed((): Trace[] => {
  if (metaOf(main.value).state !== "ready") return [];
  return shownWorkers.value.flatMap((worker) => {
    const meta = metaOf(worker);
    if (meta.state !== "ready") return [];
    const place = placeOf(worker);
    return [{ id: worker, place, stamp: meta.stamp, meta, labels: labelsOf(place, meta) }];
  });
});

export const traceOf = (id: string): Trace | undefined => traces.value.find((one) => one.id === id);

/** A request about a trace, of the very file that is drawn. */
export const requestOf = (
  { place, stamp }: Pick<Trace, "place" | "stamp">,
  route: string,
  query: Query,
): ApiRequest => ({
  route,
  query: { ...place, stamp, ...query },
});

/** Reloads a worker's trace if its file has changed since the request's stamp. */
export function reloadIfChanged(answer: { state: string; code?: string }, { query }: ApiRequest) {
  if (answer.state === "failed" && answer.code === "changed") reload(query.worker!);
}

/** The answer about a trace, once it is more than "loading". */
export async function loadFrom<T extends { state: string }>(
  from: Pick<Trace, "place" | "stamp">,
  route: string,
  query: Query,
): Promise<T | Failed> {
  const request = requestOf(from, route, query);
  const answer = await load<T>(request);
  reloadIfChanged(answer, request);
  return answer;
}
