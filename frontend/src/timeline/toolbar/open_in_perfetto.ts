/** Opens a file in Perfetto: the export's query, the offline copy's address, the messages to Perfetto's page. */

import type { Query } from "../../api/types.ts";
import type { Range } from "../model/url_codec.ts";

/** A worker's trace, and the shift of its times to the common clock. */
export interface Exported {
  place: { run: string; worker: string; span: string };
  stamp: string;
  shift_ns: number;
}

export const EXTRAS = ["memory", "flows", "args"] as const;
export type Extra = typeof EXTRAS[number];

const shiftAfter = (first: Exported) => ({ shift_ns }: Exported) => Math.round(shift_ns - first.shift_ns);

/** The query to `timeline/export`; without a range, of the whole recording. */
export function exportQuery(sources: Exported[], range: Range | null, extras: readonly Extra[]): Query {
  const [first, ...others] = sources as [Exported, ...Exported[]];
  const shift = shiftAfter(first);
  const workers = others.map((other) => ({
    worker: other.place.worker,
    span: other.place.span,
    shift_ns: shift(other),
  }));
  return {
    ...first.place,
    stamp: first.stamp,
    ...(range && {
      from_ns: String(Math.floor(range.from - first.shift_ns)),
      to_ns: String(Math.ceil(range.to - first.shift_ns)),
    }),
    ...(workers.length && { workers: JSON.stringify(workers) }),
    ...(extras.length && { include: extras.join(",") }),
  };
}

/** Where the offline copy opens the file at this address: showing the range, with processes unfolded. */
export function offlineAddress(file: string, sources: Exported[], range: Range | null): string {
  const first = sources[0]!;
  const zero = first.shift_ns + Math.min(...sources.map(shiftAfter(first)));
  const shown = range && {
    visStart: String(Math.floor(range.from - zero)),
    visEnd: String(Math.ceil(range.to - zero)),
  };
  const unfold = JSON.stringify([{ id: "dev.perfetto.ExpandTracksByRegex", args: ["."] }]);
  const options = { mode: "embedded", hideSidebar: "true", ...shown, startupCommands: unfold, url: file };
  const pairs = Object.entries(options).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `timeline/perfetto/index.html#!/?${pairs.join("&")}`;
}

export const PERFETTO = "https://ui.perfetto.dev";
const ANSWERS_WITHIN_MS = 30_000;

/**
 * Opens a file in Perfetto's page in another window: pings until the page answers, then posts the file.
 *
 * Protocol: "Deep linking to the Perfetto UI" in Perfetto's documentation.
 */
export async function openInPerfetto(page: Window, file: Promise<ArrayBuffer>, title: string, fileName: string) {
  const [buffer] = await Promise.all([file, waitForPage(page)]);
  page.postMessage({ perfetto: { buffer, title, fileName } }, PERFETTO, [buffer]);
}

function waitForPage(page: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    const pings = setInterval(
      () => page.closed ? end(reject, "its tab was closed") : page.postMessage("PING", PERFETTO),
      50,
    );
    const timeout = setTimeout(
      () => end(reject, `${PERFETTO} didn't answer; is there a way to the internet?`),
      ANSWERS_WITHIN_MS,
    );
    const listen = ({ source, origin, data }: MessageEvent) => {
      if (source === page && origin === PERFETTO && data === "PONG") end(resolve);
    };
    function end(settle: (() => void) | ((reason: Error) => void), problem = "") {
      clearInterval(pings);
      clearTimeout(timeout);
      removeEventListener("message", listen);
      settle(new Error(problem));
    }
    addEventListener("message", listen);
  });
}
