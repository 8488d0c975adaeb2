import { Fragment, h } from "preact";
import { useState } from "preact/hooks";
import type { TraceState } from "../api/types.ts";
import { candidates, compareWith, comparisonBase, stopComparing, swapComparison } from "../app/comparison_base.ts";
import { useResource } from "../app/resource.ts";
import { fileSize } from "../format/numbers.ts";
import { Dialog, Opener } from "../ui/dialog.tsx";
import { CaptureChoice } from "./capture_choice.tsx";
import { PlaceChoice } from "./place_choice.tsx";

const MOST = 200;

/** The recordings to compare with, those with most in common first. */
function Picker({ onClose }: { onClose: () => void }) {
  const [text, filter] = useState("");
  const words = text.toLowerCase().split(/\s+/);
  const matching = candidates.value.filter(({ run, recording }) =>
    words.every((word) => `${run} ${recording}`.toLowerCase().includes(word))
  );
  return (
    <Dialog class="picker" title="Compare with" onClose={onClose}>
      {(close) => (
        <>
          <input
            type="search"
            placeholder="Filter: run, worker, span"
            aria-label="Filter recordings"
            value={text}
            onInput={({ currentTarget: { value } }) => filter(value)}
          />
          <ul aria-label="Recordings">
            {matching.slice(0, MOST).map(({ place, run, recording, bytes }) => (
              <li key={JSON.stringify(place)}>
                <button type="button" onClick={() => (compareWith(place), close())}>
                  <b>{run}</b>
                  <span>{recording} · {fileSize(bytes)}</span>
                </button>
              </li>
            ))}
          </ul>
          {!matching.length && <p class="quiet">No recording matches.</p>}
          {matching.length > MOST && <p class="quiet">Filter to see the other {matching.length - MOST}.</p>}
        </>
      )}
    </Dialog>
  );
}

function Begin() {
  const hasOther = candidates.value.length > 0;
  return (
    <Opener
      words="Compare with…"
      class="compare"
      disabled={!hasOther}
      tip={hasOther ? "Compare every table with that of another trace" : "There is no other trace here."}
    >
      {(onClose) => <Picker onClose={onClose} />}
    </Opener>
  );
}

/** The base of the comparison, with buttons to swap it and to stop comparing. */
export function CompareChoice() {
  const { base_run: run = "", base_worker: worker = "", base_span: span = "", version } = comparisonBase.value ?? {};
  const state = useResource<TraceState>(
    span ? { route: "state", query: { run, worker, span }, version: version ?? "" } : null,
  );
  if (!comparisonBase.value) return <Begin />;
  return (
    <fieldset class="compare">
      <legend>Compared with</legend>
      <PlaceChoice place={{ run, worker, span }} isBase open={compareWith} />
      <CaptureChoice of="base_capture" state={state as TraceState | null} />
      <div>
        <button type="button" onClick={swapComparison} data-tip="Swap base and new">
          Swap
        </button>
        <button type="button" onClick={stopComparing} data-tip="Stop comparing">Off</button>
      </div>
    </fieldset>
  );
}
