/** The timeline's tree and canvas, its header, and a description for screen readers. */

import { h } from "preact";
import { computed, signal, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { address, go } from "../app/router.ts";
import { plural } from "../format/numbers.ts";
import { readableName } from "../format/readable_names.ts";
import { Renderer } from "./draw/renderer.ts";
import { commandsOf, followHeldKeys } from "./input/keyboard_input.ts";
import { PointerInput } from "./input/pointer_input.ts";
import { orderNaturally } from "./input/reorder.ts";
import { duration } from "./model/times.ts";
import { BookmarkLabels } from "./panels/bookmarks.tsx";
import { bookmarks, followLatest } from "./state/bookmarks.ts";
import { isPictured } from "./state/clocks.ts";
import { startIdleGaps } from "./state/idle_gaps.ts";
import { area, detail, search, selection } from "./state/selection.ts";
import { stepLabels } from "./model/ranges.ts";
import { steps } from "./state/sources.ts";
import { isWaiting, lastFrame, mode, order, scroll, settled, trackLayout } from "./state/viewport_state.ts";
import { Tooltip } from "./tooltip.tsx";
import { Scrollbar, TrackTree } from "./track_tree.tsx";
import { type Commands, useKeys } from "../ui/keys.ts";

const DISMISSED = "kinetoscope.timeline.hinted";

const isDismissed = signal(false);

/** Browsers may forbid a page in a frame to remember anything: then the hint comes again. */
function remember(act: () => void) {
  try {
    act();
  } catch {
    // As if nothing had been remembered.
  }
}

/** Asks the browser whether the hint was dismissed, which may take milliseconds. */
export const readDismissal = () => remember(() => (isDismissed.value = localStorage.getItem(DISMISSED) !== null));

/** The first keys to know; once dismissed, the hint doesn't come back. */
function Hint() {
  if (isDismissed.value) return null;
  const close = () => {
    isDismissed.value = true;
    remember(() => localStorage.setItem(DISMISSED, "1"));
  };
  return (
    <p class="hint">
      <kbd>W</kbd> <kbd>S</kbd> zoom <kbd>A</kbd> <kbd>D</kbd> move <kbd>/</kbd> search <kbd>F</kbd> fit <kbd>?</kbd>
      {" "}
      all keys
      <button type="button" class="plain" aria-label="Don't show this again" onClick={close}>×</button>
    </p>
  );
}

/** Describes the visible part for screen readers. */
const description = computed(() => {
  const { from, to } = settled.value;
  const step = steps.value.find(({ start_ns, end_ns }) => start_ns >= from && end_ns <= to);
  const tracks = trackLayout.value.lines.filter(({ band }) => band).length + trackLayout.value.pinned.length;
  const parts = [`${duration(to - from)} from ${duration(from)}`, plural(tracks, "track")];
  if (step) parts.push(stepLabels(step)[1].toLowerCase());
  if (!isWaiting.value) parts.push(plural(lastFrame.boxes, "box").replace(/boxs$/, "boxes"));
  const facts = detail.value;
  if (selection.value && facts?.state === "ready") {
    parts.push(
      `selected: ${readableName(facts.name)}, ${facts.category}, ${duration(facts.dur_ns)}, at ${
        duration(facts.start_ns)
      }`,
    );
  }
  if (area.value) parts.push(`area of ${duration(area.value.to - area.value.from)}`);
  if (bookmarks.value.length) parts.push(plural(bookmarks.value.length, "bookmark"));
  const counts = Object.values(search.value?.answers ?? {}).map((answer) =>
    answer.state === "ready" ? answer.count : 0
  );
  if (counts.length) parts.push(plural(counts.reduce((sum, count) => sum + count, 0), "result"));
  return parts.join("; ");
});

function Corner() {
  return (
    <div class="corner">
      <input
        type="search"
        placeholder="Filter tracks"
        aria-label="Filter tracks"
        value={address.value.tracks ?? ""}
        onInput={({ currentTarget: { value } }) => {
          scroll.value = 0;
          go({ tracks: value });
        }}
      />
      <div class="foot">
        {order.value.length
          ? (
            <button type="button" class="link" data-tip="Restore the original order" onClick={orderNaturally}>
              Natural order
            </button>
          )
          : <i />}
        <span class="quiet">{duration(settled.value.to - settled.value.from)} shown</span>
      </div>
    </div>
  );
}

export function Canvas() {
  const canvas = useRef<HTMLCanvasElement>(null), head = useRef<HTMLCanvasElement>(null);
  const commands = useSignal<Commands>({});
  useKeys(commands.value);
  useLayoutEffect(() => {
    const view = new Renderer(canvas.current!, head.current!);
    isWaiting.value = true;
    view.start();
    commands.value = commandsOf(view);
    const ends = [
      startIdleGaps(),
      followLatest(),
      followHeldKeys(view),
      new PointerInput(view).listen(),
      () => view.stop(),
    ];
    return () => ends.forEach((end) => end());
  }, []);
  return (
    <div class="stage" aria-busy={isWaiting.value || undefined} data-mode={mode.value}>
      <div class="above">
        <Corner />
        <canvas ref={head} class="head-canvas" aria-hidden="true" />
        <BookmarkLabels />
      </div>
      <div class="tracks">
        <TrackTree />
        <canvas
          ref={canvas}
          class="body-canvas"
          tabIndex={0}
          role="img"
          aria-label="Timeline"
          aria-describedby="timeline-shown"
        />
        {isWaiting.value && !isPictured.value && <div class="outline" aria-hidden="true" />}
        <Scrollbar />
        <Tooltip />
      </div>
      <Hint />
      <p id="timeline-shown" class="hidden" role="status">{description.value}</p>
    </div>
  );
}
