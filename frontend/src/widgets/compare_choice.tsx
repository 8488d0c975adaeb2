import { base, compareNoMore, compareWith, hasOther, swap } from "../base.ts";
import { listing, placeIn, spanLabel } from "../state.ts";
import { Choice } from "./choice.tsx";

function Begin() {
  const tip = hasOther.value ? "Show every table beside that of another trace" : "There is no other trace here.";
  return (
    <button
      type="button"
      class="compare"
      disabled={!hasOther.value}
      data-tip={tip}
      onClick={() => compareWith()}
    >
      Compare with…
    </button>
  );
}

/** What the shown trace is compared with: a place of its own, which can be swapped with the first and left. */
export function CompareChoice() {
  if (!base.value) return <Begin />;
  const runs = listing.value?.runs ?? [];
  const { base_run: run, base_worker: worker, base_span: span } = base.value;
  const workers = runs.find(({ name }) => name === run)?.workers ?? [];
  const spans = workers.find(({ name }) => name === worker)?.spans ?? [];
  return (
    <fieldset class="compare">
      <legend>Compared with</legend>
      <Choice
        title="Base run"
        value={run}
        options={runs.map(({ name, label }) => [name, label])}
        onPick={(name) => compareWith(placeIn(name, worker, span))}
      />
      <Choice
        title="Base worker"
        value={worker}
        options={workers.map(({ name }) => [name, name])}
        onPick={(name) => compareWith(placeIn(run, name, span))}
      />
      <Choice
        title="Base span"
        value={span}
        options={spans.map((span) => [span.name, spanLabel(run, worker, span)])}
        onPick={(name) => compareWith({ run, worker, span: name })}
      />
      <div>
        <button type="button" onClick={swap} data-tip="Show the base, compared with what is shown now">Swap</button>
        <button type="button" onClick={compareNoMore} data-tip="Show one trace alone again">Off</button>
      </div>
    </fieldset>
  );
}
