/** The page of the timeline: a toolbar, the canvas, a drawer below it. */

import { useEffect } from "preact/hooks";
import { Failure, Skeleton } from "../widgets/waiting.tsx";
import { Canvas } from "./canvas.tsx";
import { Drawer } from "./drawer.tsx";
import { PathState } from "./path_state.tsx";
import { startTimeline } from "./start.ts";
import { main, sources, unready } from "./state.ts";
import { Toolbar } from "./toolbar.tsx";
import { WorkersState } from "./workers_choice.tsx";

export function TimelinePage() {
  useEffect(startTimeline, []);
  const own = unready.value.find(([worker]) => worker === main.value)?.[1];
  if (own?.state === "failed") return <Failure {...own} />;
  if (!sources.value.length) return <Skeleton progress={own?.progress ?? null} />;
  return (
    <div class="timeline">
      <Toolbar />
      <WorkersState />
      <PathState />
      <Canvas />
      <Drawer />
    </div>
  );
}
