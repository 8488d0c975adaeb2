import { Fragment, h, type RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { decimal } from "../format/numbers.ts";
import { counterText } from "./draw/counters.ts";
import { startSpread } from "./model/collective_peers.ts";
import { duration } from "./model/times.ts";
import { collectivePeers } from "./state/collective_peers.ts";
import { type Hover, hover, hoverFacts } from "./state/selection.ts";
import { sourceOf } from "./state/sources.ts";
import { counterAtPointer, type CounterValue, pointer } from "./state/viewport_state.ts";
import { PathText } from "./toolbar/critical_path.tsx";

function CounterText({ counter, least, most, last }: CounterValue) {
  const format = (value: number) => counterText(counter, value);
  return (
    <>
      <b>{format(last)}</b>
      {least < most && <p>from {format(least)} to {format(most)} in this pixel</p>}
      <p class="quiet">
        {counter.name} · {counter.device}
        {counter.stream !== null && ` · stream ${counter.stream}`}
        {counter.is_relative && " · since the recording began"}
      </p>
    </>
  );
}

/** Keeps the box next to the pointer, within its parent. */
function useNextToPointer(box: RefObject<HTMLDivElement | null>) {
  useLayoutEffect(() => {
    const { current } = box;
    if (!current?.parentElement) return;
    const { x, y } = pointer.value;
    const { clientWidth, clientHeight } = current.parentElement;
    const left = Number(current.dataset.gutter) + x + 14;
    current.style.left = `${Math.max(4, Math.min(left, clientWidth - current.offsetWidth - 6))}px`;
    const below = y + 18;
    current.style.top = `${
      below + current.offsetHeight > clientHeight ? Math.max(2, y - current.offsetHeight - 10) : below
    }px`;
  });
}

function SliceText({ over }: { over: Hover }) {
  const { name, category, count } = over, facts = hoverFacts.value;
  const track = sourceOf(over.source)?.meta.tracks[over.track];
  const launcher = facts?.replayed?.op ?? facts?.launched_by?.op?.name;
  const length = facts ? duration(facts.dur_ns) : `≈ ${duration(over.dur_ns)}`;
  return (
    <>
      <b>{facts?.name ?? (name || "…")}</b>
      <p>
        {facts && facts.dur_ns === 0 ? "instant" : length}
        {facts && facts.self_ns !== null && facts.self_ns !== facts.dur_ns && ` · self ${duration(facts.self_ns)}`}
        {` · at ${duration((facts ?? over).start_ns)}`}
      </p>
      {facts?.launched && facts.launched.count > 0 && (
        <p>launched {decimal(facts.launched.count)} on the device, {duration(facts.launched.device_ns)}</p>
      )}
      {launcher && <p>launched by {launcher}</p>}
      <p class="quiet">
        {category}
        {track && ` · ${track.name} · ${track.process}`}
      </p>
      <PathText source={over.source} slice={over.slice} />
      {collectivePeers.value.length > 1 && (
        <p>
          on {decimal(collectivePeers.value.length)} workers; begins within{" "}
          {duration(startSpread(collectivePeers.value, (source) => sourceOf(source)?.shift_ns ?? 0))}{" "}
          by the clocks as shown
        </p>
      )}
      {count > 1 && <p class="quiet">The longest of {decimal(count)} slices that begin here; zoom in to see them.</p>}
    </>
  );
}

/** The tooltip of the slice or counter under the pointer. */
export function Tooltip() {
  const box = useRef<HTMLDivElement>(null);
  const over = hover.value;
  useNextToPointer(box);
  if (!over && !counterAtPointer.value) return null;
  const gutter = document.querySelector<HTMLElement>(".gutter")?.offsetWidth ?? 0;
  return (
    <div class="tip on-canvas" ref={box} data-gutter={gutter}>
      {over ? <SliceText over={over} /> : <CounterText {...counterAtPointer.value!} />}
    </div>
  );
}
