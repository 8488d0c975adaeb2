/** The dialog that opens the timeline in Perfetto: the range, the file's size, and which Perfetto. */

import { Fragment, h } from "preact";
import { type Signal, useSignal } from "@preact/signals";
import type { Loading, Query } from "../../api/types.ts";
import { useResource } from "../../app/resource.ts";
import { stepWord } from "../../app/router.ts";
import { capitalized } from "../../format/steps.ts";
import { fileSize, plural, quantity } from "../../format/numbers.ts";
import type { Range } from "../model/url_codec.ts";
import { area, detail, selection } from "../state/selection.ts";
import { sourceOf, sources, steps, whole } from "../state/sources.ts";
import { main } from "../state/traces.ts";
import { settled } from "../state/viewport_state.ts";
import {
  type Exported,
  exportQuery,
  type Extra,
  EXTRAS,
  offlineAddress,
  openInPerfetto,
  PERFETTO,
} from "./open_in_perfetto.ts";
import { Check, Menu } from "../../ui/choice.tsx";
import { Dialog, Opener } from "../../ui/dialog.tsx";

interface Size {
  state: "ready";
  name: string;
  slices: number;
  bytes: number;
  is_exact: boolean;
}
interface Copy {
  state: "ready";
  is_installed: boolean;
}

const LOADING: Loading = { state: "loading", progress: null };

const MAX_POSTED_BYTES = 500e6;
const EXTRA_TITLES: Record<Extra, string> = {
  memory: "Memory curves",
  flows: "Arrows from launches to kernels and from forward to backward",
  args: "Arguments: shapes, ids, call stacks",
};

export const PerfettoButton = () => (
  <Opener words="Perfetto…" tip="Open this timeline in Perfetto, or save it as a file">
    {(onClose) => <PerfettoDialog onClose={onClose} />}
  </Opener>
);

function selectedRange(): Range | null {
  if (area.value) return area.value;
  const answer = detail.value, source = selection.value && sourceOf(selection.value.source);
  if (answer?.state !== "ready" || !source) return null;
  const from = answer.start_ns + source.shift_ns;
  return { from, to: from + Math.max(1, answer.dur_ns) };
}

/** The ranges to export; a null range is all. */
function choices(): [id: string, title: string, range: Range | null][] {
  const shift = sourceOf(main.value)?.shift_ns ?? 0;
  const selected = selectedRange();
  return [
    ["whole", "The whole recording", null],
    ["visible", `The visible range (${lengthText(settled.value)})`, settled.value],
    ...(selected
      ? [["selection", `The selection (${lengthText(selected)})`, selected] as [string, string, Range]]
      : []),
    ...steps.value.map(({ name, start_ns, end_ns }): [string, string, Range] => {
      const range = { from: start_ns + shift, to: end_ns + shift };
      return [`step ${name}`, `${capitalized(stepWord.value)} ${name} (${lengthText(range)})`, range];
    }),
  ];
}
const lengthText = ({ from, to }: Range) => quantity(Math.round(to - from), "duration");

const startChoice = (): string => {
  if (selectedRange() && area.value) return "selection";
  const { from, to } = settled.value;
  return from <= whole.value.from && to >= whole.value.to ? "whole" : "visible";
};

/** What the file holds besides the slices. */
function Extras({ chosen }: { chosen: Signal<Extra[]> }) {
  const toggle = (extra: Extra, isOn: boolean) =>
    chosen.value = EXTRAS.filter((one) => one === extra ? isOn : chosen.value.includes(one));
  return (
    <ul>
      {EXTRAS.map((extra) => (
        <li key={extra}>
          <Check isOn={chosen.value.includes(extra)} set={(isOn) => toggle(extra, isOn)}>{EXTRA_TITLES[extra]}</Check>
        </li>
      ))}
    </ul>
  );
}

function PerfettoDialog({ onClose }: { onClose: () => void }) {
  const rangeId = useSignal(startChoice()), worker = useSignal("");
  const extras = useSignal<Extra[]>(["memory", "flows"]);
  const ranges = choices();
  const range = ranges.find(([id]) => id === rangeId.value)?.[2] ?? null;
  const chosen = worker.value ? sources.value.filter(({ id }) => id === worker.value) : sources.value;
  return (
    <Dialog class="perfetto" title="Open in Perfetto" onClose={onClose}>
      {() => (
        <>
          <Menu
            title="Range"
            class="choice"
            value={rangeId.value}
            options={ranges.map(([id, title]) => [id, title])}
            onPick={(id) => (rangeId.value = id)}
          />
          {sources.value.length > 1 && (
            <Menu
              title="Workers"
              class="choice"
              value={worker.value}
              options={[
                ["", `All ${sources.value.length} shown`],
                ...sources.value.map(({ id }) => [id, id] as const),
              ]}
              onPick={(id) => (worker.value = id)}
            />
          )}
          <Extras chosen={extras} />
          {chosen.length > 0 && <Ways chosen={chosen} range={range} extras={extras.value} />}
        </>
      )}
    </Dialog>
  );
}

/** The file's size, and the ways to open or save it. */
function Ways({ chosen, range, extras }: { chosen: Exported[]; range: Range | null; extras: Extra[] }) {
  const query = exportQuery(chosen, range, extras);
  const size = useResource<Size | Loading>({ route: "timeline/export/size", query }) ?? LOADING;
  const copy = useResource<Copy>({ route: "timeline/perfetto", query: {} });
  if (size.state === "failed") return <p class="problem" role="alert">{size.message}</p>;
  const address = new URL(`timeline/export?${new URLSearchParams(query)}`, document.baseURI).href;
  const offline = new URL(offlineAddress(address, chosen, range), document.baseURI).href;
  const isThere = copy?.state === "ready" && copy.is_installed;
  return (
    <>
      <p class="size" role="status">{sizeText(size)}</p>
      <p class="ways">
        {isThere && <a class="button" href={offline} target="_blank" rel="noopener">Open the offline copy</a>}
        {size.state === "ready" && <a class="button" href={address} download={size.name}>Download</a>}
      </p>
      {copy && (isThere ? <OfflineText /> : <Online size={size} query={query} title={titleOf(chosen)} />)}
    </>
  );
}

const titleOf = (chosen: Exported[]) => {
  const { run, worker } = chosen[0]!.place;
  return `${run} ${chosen.length > 1 ? plural(chosen.length, "worker") : worker}`;
};

const sizeText = (size: Size | Loading) =>
  size.state === "loading"
    ? "Estimating the file's size …"
    : `${plural(size.slices, "slice")}, ${size.is_exact ? "" : "about "}${fileSize(size.bytes)} packed.`;

const OfflineText = () => (
  <p class="quiet">
    It opens in a new tab from this server, without the internet. Your browser stores the opened trace under this
    address until you clear it.
  </p>
);

/** Opens ui.perfetto.dev: nothing connects to it before the user clicks. */
function Online({ size, query, title }: { size: Size | Loading; query: Query; title: string }) {
  const status = useSignal("");
  const isTooLarge = size.state === "ready" && size.bytes > MAX_POSTED_BYTES;
  const open = () => {
    // Within the click handler: later, browsers block the popup.
    const page = window.open(PERFETTO);
    if (!page) {
      return (status.value = "The browser didn't open a new tab. Allow it for this page, or download the file.");
    }
    status.value = "Writing the file, and waiting for Perfetto …";
    const name = size.state === "ready" ? size.name : "timeline.json.gz";
    void openInPerfetto(page, fileOf(query), title, name).then(
      () => (status.value = "Perfetto received the file: see its tab."),
      (
        error: Error,
      ) => (status.value = `That failed: ${error.message}. Download the file and open it there by hand.`),
    );
  };
  return (
    <>
      <p class="ways">
        <button type="button" disabled={size.state !== "ready" || isTooLarge} onClick={open}>
          Open ui.perfetto.dev
        </button>
      </p>
      <p class="quiet">
        {isTooLarge && "The file is too large to pass to another tab: choose a shorter range. "}
        This loads Perfetto's page from the internet in a new tab. The trace is passed to that tab inside your browser
        and isn't sent anywhere. To work offline, run <code>pip install 'kinetoscope[perfetto]'</code>{" "}
        where the server runs.
      </p>
      <p role="status">{status.value}</p>
    </>
  );
}

async function fileOf(query: Query): Promise<ArrayBuffer> {
  const response = await fetch(`timeline/export?${new URLSearchParams(query)}`);
  if (response.headers.get("Content-Type") === "application/gzip") return await response.arrayBuffer();
  const { message } = await response.json() as { message?: string };
  throw new Error(message ?? "the trace is being reloaded; try again in a moment");
}
