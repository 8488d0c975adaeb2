/** The tree of sources, processes, threads and streams at the left of the canvas. */

import { h } from "preact";
import { scrollBy, wheelPixels } from "./input/pointer_input.ts";
import { drag, startDrag } from "./input/reorder.ts";
import { axisOf, type Line, PINS, type TrackLayout } from "./model/layout.ts";
import { scroll, size, toggleFolds, togglePin, trackLayout } from "./state/viewport_state.ts";

const LONG = 22; // letters of a title that may not have room

const NAME_HEIGHT = 18;

/** How far the name of a line moves down, so that it stays in sight while any of the line is. */
const nameShift = (top: number, height: number): number => Math.max(0, Math.min(-top, height - NAME_HEIGHT));

/** A line's tooltip: its full title, and that it can be moved. */
const tipOf = ({ title, group }: Line): string | undefined =>
  [title.length > LONG ? title : "", group ? "Drag it, or press Alt+↑ or Alt+↓, to move it" : ""].filter(Boolean).join(
    "\n",
  ) ||
  undefined;

/** A title, whose number at its end stays where there is no room for the rest. */
function Title({ text }: { text: string }) {
  const [, words, number] = /^(.+)( \d{1,3})$/.exec(text) ?? [];
  return (
    <span class={number ? "title numbered" : "title"}>
      {number ? [<span key="words">{words}</span>, number] : text}
    </span>
  );
}

function Entry({ line, top }: { line: Line; top: number }) {
  const { id, kind, title, note, height, canFold, isFolded, isPinned, isSecondary, group } = line;
  const axis = (kind === "axis" && !id.startsWith("c")) || isPinned ? axisOf(trackLayout.value, line) : undefined;
  const isDragged = drag.value?.id === id;
  return (
    <li
      class={`track of-${kind} ${isSecondary ? "secondary" : ""} ${group ? "moves" : ""} ${isDragged ? "dragged" : ""}`}
      style={{ top: `${top}px`, height: `${height}px`, paddingTop: `${nameShift(top, height)}px` }}
      data-line={id}
      onPointerDown={(event) => startDrag(event, line)}
    >
      {canFold
        ? (
          <button
            type="button"
            class="plain name"
            aria-expanded={!isFolded}
            aria-keyshortcuts={group ? "Alt+ArrowUp Alt+ArrowDown" : undefined}
            data-tip={tipOf(line)}
            onClick={() => toggleFolds([id])}
          >
            <span class="sign" aria-hidden="true">{isFolded ? "▸" : "▾"}</span>
            <Title text={title} />
            {note && <small>{note}</small>}
          </button>
        )
        : (
          <span class="name" data-tip={tipOf(line)}>
            <Title text={title} />
          </span>
        )}
      {axis && (
        <button
          type="button"
          class="plain pin"
          aria-pressed={isPinned}
          aria-label={isPinned ? `Unpin ${title}` : `Pin ${title}`}
          data-tip={isPinned ? "Unpin (P)" : "Pin to the top (P)"}
          onClick={() => togglePin(axis.id)}
        >
          <span aria-hidden="true">{isPinned ? "★" : "☆"}</span>
        </button>
      )}
    </li>
  );
}

/** The visible lines, with some around them. */
function linesNearView({ lines, pinnedHeight }: TrackLayout): Line[] {
  const from = scroll.value - 200, to = scroll.value + size.value.height - pinnedHeight + 200;
  return lines.filter(({ y, height }) => y + height > from && y < to);
}

/** The line where the dragged one would be dropped. */
function DropMark() {
  const { value } = drag;
  if (!value) return null;
  const top = value.top + (value.group === PINS ? 0 : trackLayout.value.pinnedHeight - scroll.value);
  return <i class="drop" aria-hidden="true" style={{ top: `${top}px` }} />;
}

export function TrackTree() {
  const { pinned, pinnedHeight } = trackLayout.value;
  return (
    <div class="gutter" onWheel={(event) => scrollBy(wheelPixels(event)[1])}>
      <ul class="pinned" aria-label="Pinned tracks" style={{ height: `${pinnedHeight}px` }} hidden={!pinned.length}>
        {pinned.map((line) => <Entry key={line.id} line={line} top={line.y} />)}
      </ul>
      <ul class="scrolled" aria-label="Tracks" style={{ top: `${pinnedHeight}px` }}>
        {linesNearView(trackLayout.value).map((line) => (
          <Entry
            key={line.id}
            line={line}
            top={line.y - scroll.value}
          />
        ))}
      </ul>
      <DropMark />
    </div>
  );
}

const LEAST_THUMB = 24;

/** How far the tracks are scrolled. */
export function Scrollbar() {
  const { height, pinnedHeight } = trackLayout.value;
  const room = size.value.height - pinnedHeight;
  if (height <= room || room <= 0) return null;
  const thumb = Math.max(LEAST_THUMB, (room / height) * room);
  const top = (scroll.value / (height - room)) * (room - thumb);
  const drag = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") bar.setPointerCapture(event.pointerId);
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const y = event.clientY - bar.getBoundingClientRect().top - thumb / 2;
    scroll.value = Math.max(0, Math.min(height - room, (y / (room - thumb)) * (height - room)));
  };
  return (
    <div
      class="scrollbar"
      aria-hidden="true"
      style={{ top: `${pinnedHeight}px`, height: `${room}px` }}
      onPointerDown={drag}
      onPointerMove={drag}
    >
      <i style={{ top: `${top}px`, height: `${thumb}px` }} />
    </div>
  );
}
