import { h } from "preact";
import type { TraceState } from "../api/types.ts";
import { candidates, compareWith, comparisonBase, stopComparing, swapComparison } from "../app/comparison_base.ts";
import { useResource } from "../app/resource.ts";
import { fileSize } from "../format/numbers.ts";
import { Opener } from "../ui/dialog.tsx";
import { CaptureChoice } from "./capture_choice.tsx";
import { Picker } from "./picker.tsx";
import { PlaceChoice } from "./place_choice.tsx";

/** The recordings to compare with, those with most in common first. */
const Picking = ({ onClose }: { onClose: () => void }) => (
  <Picker
    title="Compare with"
    label="Recordings"
    placeholder="Filter: run, worker, span"
    choices={candidates.value.map(({ place, run, recording, bytes, common }) => ({
      key: JSON.stringify(place),
      group: "",
      name: run,
      note: `${recording} · ${fileSize(bytes)}${common && ` · ${common}`}`,
      pick: () => compareWith(place),
    }))}
    onClose={onClose}
  />
);

function Begin() {
  const hasOther = candidates.value.length > 0;
  return (
    <Opener
      words="Compare with…"
      class="compare"
      disabled={!hasOther}
      tip={hasOther ? "Compare every table with that of another trace" : "There is no other trace here."}
    >
      {(onClose) => <Picking onClose={onClose} />}
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
