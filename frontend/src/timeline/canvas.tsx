import { useEffect, useRef } from "preact/hooks";
import { viewport } from "./state.ts";
import { marks } from "./times.ts";

/** The drawn timeline. */
export function Canvas() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { from, to } = viewport.value;
  useEffect(() => {
    const { current } = canvas;
    const pen = current?.getContext("2d");
    if (!current || !pen) return;
    const width = current.width = current.clientWidth;
    pen.fillStyle = getComputedStyle(current).color;
    for (const { at, text } of marks(from, to, (to - from) / (width / 110))) {
      pen.fillText(text, ((at - from) / (to - from)) * width, 12);
    }
  });
  return <canvas ref={canvas} class="timeline-canvas" aria-label="Timeline" />;
}
