/** The page of the timeline: a toolbar, the canvas, a drawer below it. */

import { type ComponentChildren, h } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { Canvas, readDismissal } from "./canvas.tsx";
import { Drawer } from "./panels/drawer.tsx";
import { SearchBox } from "./search/search_box.tsx";
import { startAlignment } from "./state/alignment.ts";
import { startClocks } from "./state/clocks.ts";
import { startSelection } from "./state/selection.ts";
import { sources, whole } from "./state/sources.ts";
import { main, metas, unready } from "./state/traces.ts";
import { startViewport, zoomToRange } from "./state/viewport_state.ts";
import { PathChoice, PathState } from "./toolbar/critical_path.tsx";
import { PerfettoButton } from "./toolbar/perfetto_dialog.tsx";
import { WorkersChoice, WorkersState } from "./toolbar/workers_choice.tsx";
import { catalogue, missing, openView, TIMELINE } from "../app/router.ts";
import { LinkTo } from "../ui/link.tsx";
import { Failure, Notice, Skeleton } from "../ui/status.tsx";

/** Starts following the address and loading what it names; returns a function that stops. */
function startTimeline(): () => void {
  const ends = [metas.start(), startClocks(), startAlignment(), startViewport(), startSelection()];
  readDismissal();
  return () => ends.forEach((end) => end());
}

export function TimelinePage({ badge }: { badge: ComponentChildren }) {
  useLayoutEffect(startTimeline, []); // before the paint: an effect after it asks a frame later
  const own = unready.value.find(([worker]) => worker === main.value)?.[1];
  const hint = missing.value[TIMELINE.id];
  if (hint) {
    const ofSnapshot = catalogue.value.find(({ id, is_of_snapshot, place }) =>
      is_of_snapshot && place.kind === "tab" && !(id in missing.value)
    );
    return (
      <Notice title={`${TIMELINE.title}: not in this trace`}>
        <p>{hint}</p>
        {ofSnapshot && <LinkTo open={() => openView(ofSnapshot.id)}>{ofSnapshot.entry.title}</LinkTo>}
      </Notice>
    );
  }
  if (own?.state === "failed") return <Failure {...own} />;
  if (!sources.value.length) return <Skeleton progress={own?.progress ?? null} />;
  return (
    <div class="timeline">
      <Toolbar badge={badge} />
      <WorkersState />
      <PathState />
      <Canvas />
      <Drawer />
    </div>
  );
}

/** The toolbar above the canvas. */
export function Toolbar({ badge }: { badge: ComponentChildren }) {
  return (
    <div class="tools">
      <h1>Timeline</h1>
      <SearchBox />
      <span class="space" />
      <WorkersChoice />
      <PathChoice />
      <button type="button" data-tip="The whole recording (0)" onClick={() => zoomToRange(whole.value)}>Fit all</button>
      <PerfettoButton />
      {badge}
    </div>
  );
}
