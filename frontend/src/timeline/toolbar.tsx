import { PathChoice } from "./path_state.tsx";
import { PerfettoButton } from "./perfetto.tsx";
import { SearchBox } from "./search_box.tsx";
import { whole, zoomToRange } from "./state.ts";
import { WorkersChoice } from "./workers_choice.tsx";

/** What is above the canvas. */
export function Toolbar() {
  return (
    <div class="tools">
      <h1>Timeline</h1>
      <SearchBox />
      <span class="space" />
      <WorkersChoice />
      <PathChoice />
      <button type="button" data-tip="All of the recording (0)" onClick={() => zoomToRange(whole.value)}>Whole</button>
      <PerfettoButton />
    </div>
  );
}
