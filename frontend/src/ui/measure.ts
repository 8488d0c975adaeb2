/** Widths of texts and elements in pixels. */

import { type RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { cutAmong, shorten } from "../format/numbers.ts";
import { cutFolders, cutPlace } from "../format/stacks.ts";

const MEASURED = 400; // letters of a name that are enough to know how wide its letters are
const pen = document.createElement("canvas").getContext("2d")!;

function measure(text: string, type: string): number {
  pen.font = `${type} system-ui, sans-serif`;
  return pen.measureText(text).width;
}

const letters = new Map<string, Map<string, number>>();

/** The width of a text in the page's type: that of its letters, each measured once. */
export function textWidth(text: string, size = 13, weight = 400): number {
  const type = `${weight} ${size}px`;
  if (!letters.has(type)) letters.set(type, new Map());
  const widths = letters.get(type)!;
  let width = 0;
  for (const letter of text.slice(0, MEASURED)) {
    let one = widths.get(letter);
    if (one === undefined) widths.set(letter, one = measure(letter, type));
    width += one;
  }
  return width;
}

/** How many characters of a text fit. */
function fitting(text: string, room: number, size: number, weight?: number): number {
  const width = textWidth(text, size, weight);
  const each = width / Math.min(text.length, MEASURED);
  return width <= room ? text.length : Math.max(6, Math.floor(room / each) - 1);
}

/** The text with its middle left out, so that it fits. */
export function fitText(text: string, room: number, size = 13): string {
  let length = fitting(text, room, size), short = shorten(text, length);
  while (length > 3 && textWidth(short, size) > room) short = shorten(text, --length);
  return short;
}

/** The text without its end, so that it fits: names begin with what matters. */
export function cutText(text: string, room: number, size = 13, weight = 400): string {
  let length = fitting(text, room, size, weight);
  if (length === text.length) return text;
  while (length > 3 && textWidth(`${text.slice(0, length - 1)}…`, size, weight) > room) length--;
  return `${text.slice(0, length - 1)}…`;
}

/**
 * A name so that it fits: a place in the code without its folders, then without the end of the function and the
 * beginning of the file, so that the line stays; another name without its end, or without its middle if others begin in
 * the same way.
 */
export function cutName(text: string, room: number, sorted: () => string[]): string {
  if (textWidth(text) <= room) return text;
  const short = cutFolders(text);
  const place = cutPlace(short, (cut) => textWidth(cut) <= room);
  if (place || short !== text) return place || cutText(short, room);
  let length = cutText(text, room).length, cut = cutAmong(sorted(), text, length);
  while (length > 12 && textWidth(cut) > room) cut = cutAmong(sorted(), text, --length);
  return cut;
}

interface Size {
  width: number;
  height: number;
}

/** The last size of elements of a kind: the next one most often has the same, and is then laid out once. */
const lastSizes = new Map<string, Size>();

/**
 * The current size of an element's inside; at first that of the last one of its kind.
 *
 * Its height is the largest at its width, so that a table that was short for a moment is laid out once when it grows.
 */
export function useSize(element: RefObject<HTMLElement | null>, kind = ""): Size {
  const [size, setSize] = useState(lastSizes.get(kind) ?? { width: 0, height: 0 });
  useLayoutEffect(() => {
    const measure = () => {
      if (!element.current) return;
      const { clientWidth: width, clientHeight: height } = element.current;
      if (kind) lastSizes.set(kind, { width, height });
      setSize((before) => (before.width === width && before.height >= height ? before : { width, height }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(element.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  return size;
}

/** The width of an element's inside, kept current. */
export const useWidth = (element: RefObject<HTMLElement | null>): number => useSize(element).width;
