import { PerfettoButton } from "./perfetto.tsx";
import { isPathShown, turnPath } from "./paths.ts";
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
      <button
        type="button"
        class="turn"
        aria-pressed={isPathShown.value}
        data-tip="What made each step as long as it was (C)"
        onClick={turnPath}
      >
        Critical path
      </button>
      <button type="button" data-tip="All of the recording (0)" onClick={() => zoomToRange(whole.value)}>Whole</button>
      <PerfettoButton />
    </div>
  );
}
