import { whole, zoomToRange } from "./state.ts";

/** What is above the canvas. */
export function Toolbar() {
  return (
    <div class="tools">
      <h1>Timeline</h1>
      <span class="space" />
      <button type="button" data-tip="All of the recording (0)" onClick={() => zoomToRange(whole.value)}>Whole</button>
    </div>
  );
}
