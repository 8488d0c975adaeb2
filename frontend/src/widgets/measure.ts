/** Widths of texts and elements in pixels. */

import { type RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const pen = document.createElement("canvas").getContext("2d")!;

/** The width of a text in the page's type. */
export function textWidth(text: string, size = 13): number {
  pen.font = `${size}px system-ui, sans-serif`;
  return pen.measureText(text.slice(0, 400)).width;
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
