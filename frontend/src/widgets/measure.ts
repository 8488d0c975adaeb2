/** Widths of texts and elements in pixels. */

import { type RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { shortened } from "../format.ts";

const MEASURED = 400; // letters of a name that are enough to know how wide its letters are
const pen = document.createElement("canvas").getContext("2d")!;

/** The width of a text in the page's type. */
export function textWidth(text: string, size = 13): number {
  pen.font = `${size}px system-ui, sans-serif`;
  return pen.measureText(text.slice(0, MEASURED)).width;
}

/** The text with its middle left out, so that it fits. */
export function fitted(text: string, room: number, size = 13): string {
  const width = textWidth(text, size);
  if (width <= room) return text;
  const each = width / Math.min(text.length, MEASURED);
  return shortened(text, Math.max(6, Math.floor(room / each) - 1));
}

/** The width of an element's inside, kept current. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, tell] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => element.current && tell(element.current.clientWidth));
    observer.observe(element.current!);
    tell(element.current!.clientWidth);
    return () => observer.disconnect();
  }, []);
  return width;
}
