/** The tree of sources, processes, threads and streams at the left of the canvas. */

import { axisOf, type Laid, type Line } from "./layout.ts";
import { laid, scroll, size } from "./scene.ts";
import { pin, turn } from "./state.ts";

function Entry({ line, top }: { line: Line; top: number }) {
  const { id, kind, title, note, height, canFold, isFolded, isPinned, isAside } = line;
  const axis = (kind === "axis" && !id.startsWith("c")) || isPinned ? axisOf(laid.value, line) : undefined;
  return (
    <li class={`track of-${kind} ${isAside ? "aside" : ""}`} style={{ top: `${top}px`, height: `${height}px` }}>
      {canFold
        ? (
          <button
            type="button"
            class="plain name"
            aria-expanded={!isFolded}
            data-tip={title.length > 22 ? title : undefined}
            onClick={() => turn([id])}
          >
            <span class="sign" aria-hidden="true">{isFolded ? "▸" : "▾"}</span>
            <span class="title">{title}</span>
            {note && <small>{note}</small>}
          </button>
        )
        : (
          <span class="name" data-tip={title.length > 22 ? title : undefined}>
            <span class="title">{title}</span>
          </span>
        )}
      {axis && (
        <button
          type="button"
          class="plain pin"
          aria-pressed={isPinned}
          aria-label={isPinned ? `Unpin ${title}` : `Pin ${title}`}
          data-tip={isPinned ? "Put back (P)" : "Keep at the top (P)"}
          onClick={() => pin(axis.id)}
        >
          <span aria-hidden="true">{isPinned ? "★" : "☆"}</span>
        </button>
      )}
    </li>
  );
}

/** The lines of which something is in sight, with some around them. */
function near({ lines, pinnedHeight }: Laid): Line[] {
  const from = scroll.value - 200, to = scroll.value + size.value.height - pinnedHeight + 200;
  return lines.filter(({ y, height }) => y + height > from && y < to);
}

export function Gutter() {
  const { pinned, pinnedHeight } = laid.value;
  return (
    <div class="gutter">
      <ul class="pinned" aria-label="Pinned tracks" style={{ height: `${pinnedHeight}px` }} hidden={!pinned.length}>
        {pinned.map((line) => <Entry key={line.id} line={line} top={line.y} />)}
      </ul>
      <ul class="scrolled" aria-label="Tracks" style={{ top: `${pinnedHeight}px` }}>
        {near(laid.value).map((line) => <Entry key={line.id} line={line} top={line.y - scroll.value} />)}
      </ul>
    </div>
  );
}

const LEAST_THUMB = 24;

/** How far the tracks are scrolled. */
export function Scrollbar() {
  const { height, pinnedHeight } = laid.value;
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
