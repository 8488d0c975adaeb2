import { Fragment, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { candidates, compareWith, comparisonBase, stopComparing, swapComparison } from "../app/comparison_base.ts";
import { listing, placeIn, spanLabel } from "../app/router.ts";
import { fileSize } from "../format/numbers.ts";
import { Selector } from "./selector.tsx";

const MOST = 200;

/** The recordings to compare with, those with most in common first. */
function Picker({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, filter] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  const words = text.toLowerCase().split(/\s+/);
  const matching = candidates.value.filter(({ run, recording }) =>
    words.every((word) => `${run} ${recording}`.toLowerCase().includes(word))
  );
  return (
    <dialog ref={dialog} class="picker" onClose={onClose} aria-labelledby="picker">
      <h2 id="picker">Compare with</h2>
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
            <button type="button" onClick={() => (compareWith(place), dialog.current?.close())}>
              <b>{run}</b>
              <span>{recording} · {fileSize(bytes)}</span>
            </button>
          </li>
        ))}
      </ul>
      {!matching.length && <p class="quiet">No recording matches.</p>}
      {matching.length > MOST && <p class="quiet">Filter to see the other {matching.length - MOST}.</p>}
      <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
    </dialog>
  );
}

function Begin() {
  const [isOpen, show] = useState(false);
  const hasOther = candidates.value.length > 0;
  return (
    <>
      <button
        type="button"
        class="compare"
        aria-haspopup="dialog"
        disabled={!hasOther}
        data-tip={hasOther ? "Compare every table with that of another trace" : "There is no other trace here."}
        onClick={() => show(true)}
      >
        Compare with…
      </button>
      {isOpen && <Picker onClose={() => show(false)} />}
    </>
  );
}

/** The base of the comparison, with buttons to swap it and to stop comparing. */
export function CompareChoice() {
  if (!comparisonBase.value) return <Begin />;
  const runs = listing.value?.runs ?? [];
  const { base_run: run, base_worker: worker, base_span: span } = comparisonBase.value;
  const workers = runs.find(({ name }) => name === run)?.workers ?? [];
  const spans = workers.find(({ name }) => name === worker)?.spans ?? [];
  return (
    <fieldset class="compare">
      <legend>Compared with</legend>
      <Selector
        title="Base run"
        value={run}
        options={runs.map(({ name, label }) => [name, label])}
        onPick={(name) => compareWith(placeIn(name, worker, span))}
      />
      <Selector
        title="Base worker"
        value={worker}
        options={workers.map(({ name }) => [name, name])}
        onPick={(name) => compareWith(placeIn(run, name, span))}
      />
      <Selector
        title="Base span"
        value={span}
        options={spans.map((span) => [span.name, spanLabel(run, worker, span)])}
        onPick={(name) => compareWith({ run, worker, span: name })}
      />
      <div>
        <button type="button" onClick={swapComparison} data-tip="Swap base and new">
          Swap
        </button>
        <button type="button" onClick={stopComparing} data-tip="Stop comparing">Off</button>
      </div>
    </fieldset>
  );
}
