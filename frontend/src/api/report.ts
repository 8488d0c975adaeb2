/** A report: one HTML file that holds the page and the answers that it would otherwise fetch. */

import type { Failed, Listing, Query, Summary, TraceState, ViewAnswer, ViewEntry } from "./types.ts";

interface ReportTrace {
  run: string;
  worker: string;
  span: string;
  state: TraceState;
  /** What `kinetoscope summary` prints, of the run if the report holds it. */
  answer: Summary;
  answers: { view: string; parameters: Query; answer: ViewAnswer }[];
}
interface Report {
  listing: Listing;
  views: ViewEntry[];
  traces: ReportTrace[];
}

/** The element that holds the answers; null on a page served by TensorBoard. */
const element = document.getElementById("kinetoscope-report");
export const isReport = element !== null;

async function unpack(packed: string): Promise<Report> {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).json();
}

const report = element && unpack(element.textContent ?? "");

const NOT_IN_REPORT = "This report holds the default state of each view only. Open the recording itself for this.";

const PLACE = ["view", "run", "worker", "span"];

function view(trace: ReportTrace, query: Query): ViewAnswer {
  const matches = (parameters: Query) =>
    [...Object.keys(parameters), ...Object.keys(query).filter((name) => !PLACE.includes(name))]
      .every((name) => parameters[name] === query[name]);
  const entry = trace.answers.find((one) => one.view === query.view && matches(one.parameters));
  return entry?.answer ?? { state: "missing", hint: NOT_IN_REPORT };
}

/** The report's answer to a request. */
export async function answerFromReport(route: string, query: Query): Promise<unknown> {
  const { listing, views, traces } = await report!;
  if (route === "runs") return listing;
  if (route === "views") return views;
  const trace = traces.find(({ run, worker, span }) =>
    run === query.run && worker === query.worker && span === query.span
  );
  const failed: Failed = { state: "failed", code: "not_found", message: NOT_IN_REPORT };
  if (!trace) return failed;
  if (route === "state") return trace.state;
  if (trace.state.state === "failed") return trace.state;
  return route === "view" ? view(trace, query) : route === "answer" ? trace.answer : failed;
}
