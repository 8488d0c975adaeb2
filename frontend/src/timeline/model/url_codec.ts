/** Encodes and decodes the timeline's state in the address. Times are ns on the common clock. */

import type { Find } from "../../api/timeline_types.ts";

export interface Range {
  from: number;
  to: number;
}
export interface TrackPlace {
  /** The worker whose track it is. */
  source: string;
  track: number;
}
export interface Area extends Range {
  tracks: TrackPlace[];
}
/** A bookmarked area, its letter and its name. */
export interface Bookmark extends Area {
  letter: string;
  /** Empty without one. */
  name: string;
}
export interface Selected {
  source: string;
  slice: number;
}

/** Texts as one; any text survives. */
export const listText = (texts: string[]): string => texts.map(encodeURIComponent).join(",");

/** The texts in a list; unreadable ones are left out. */
export function listIn(text: string | undefined): string[] {
  return (text ?? "").split(",").filter(Boolean).flatMap((part) => {
    try {
      return [decodeURIComponent(part)];
    } catch {
      return [];
    }
  });
}

/** A number of a source: "7", or "7.rank3" if it isn't the `main` one. */
export const numberText = (source: string, number: number, main: string): string =>
  source === main ? String(number) : `${number}.${source}`;

export function numberIn(text: string, main: string): { source: string; number: number } | null {
  const [, digits, source] = /^(\d{1,15})(?:\.(.+))?$/s.exec(text) ?? [];
  return digits === undefined ? null : { source: source ?? main, number: Number(digits) };
}

export function selectionIn(text: string, main: string): Selected | null {
  const parsed = numberIn(text, main);
  return parsed && { source: parsed.source, slice: parsed.number };
}

export function rangeOf(from: string | undefined, to: string | undefined): Range | null {
  if (!from || !to) return null;
  const range = { from: Number(from), to: Number(to) };
  const isExact = [range.from, range.to].every((time) => Math.abs(time) <= Number.MAX_SAFE_INTEGER);
  return isExact && range.from < range.to ? range : null;
}

export const areaText = ({ from, to, tracks }: Area, main: string): string =>
  [Math.round(from), Math.round(to), listText(tracks.map(({ source, track }) => numberText(source, track, main)))]
    .join("~");

export function areaIn(text: string, main: string): Area | null {
  const [from, to, ...tracks] = text.split("~");
  const range = rangeOf(from, to);
  if (!range) return null;
  const places = listIn(tracks.join("~")).map((part) => numberIn(part, main)).filter((place) => place !== null);
  return { ...range, tracks: places.map(({ source, number }) => ({ source, track: number })) };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

export const bookmarksText = (bookmarks: Bookmark[], main: string): string =>
  listText(bookmarks.map((bookmark) => {
    const name = bookmark.name ? `:${listText([bookmark.name]).replaceAll("~", "%7E")}` : "";
    return `${bookmark.letter}${name}~${areaText(bookmark, main)}`;
  }));

/** The bookmarks in a text; unreadable ones and repeated letters are left out. */
export function bookmarksIn(text: string, main: string): Bookmark[] {
  const parsed = new Map<string, Bookmark>();
  for (const part of listIn(text)) {
    const [, letter, name, rest] = /^([A-Z])(?::([^~]*))?~(.*)$/s.exec(part) ?? [];
    const area = rest === undefined ? null : areaIn(rest, main);
    if (area && !parsed.has(letter!)) parsed.set(letter!, { ...area, letter: letter!, name: listIn(name)[0] ?? "" });
  }
  return [...parsed.values()];
}

/** The first unused letter; null if all are used. */
export const freeLetter = (bookmarks: Bookmark[]): string | null =>
  [...LETTERS].find((letter) => bookmarks.every((bookmark) => bookmark.letter !== letter)) ?? null;

/** Whether both are the same time on the same tracks. */
export function isSameArea(a: Area, b: Area): boolean {
  const text = ({ tracks, ...range }: Area) =>
    areaText({ ...range, tracks: [] }, "") + tracks.map(({ source, track }) => `${track}.${source}`).sort().join(" ");
  return text(a) === text(b);
}

/** A gap between the work of a device, by when it begins on the worker's own clock. */
export interface ChosenGap {
  source: string;
  device: number;
  start_ns: number;
}

export const gapToText = ({ source, device, start_ns }: ChosenGap, main: string): string =>
  `${start_ns}~${numberText(source, device, main)}`;

export function gapIn(text: string, main: string): ChosenGap | null {
  const [, start, rest] = /^(\d{1,15})~(.*)$/s.exec(text) ?? [];
  const place = rest === undefined ? null : numberIn(rest, main);
  return place && { source: place.source, device: place.number, start_ns: Number(start) };
}

export const findText = (find: Find | null): string => find ? JSON.stringify(find) : "";

export function findIn(text: string): Find | null {
  try {
    const find = JSON.parse(text);
    return find && typeof find === "object" && !Array.isArray(find) && Object.keys(find).length ? find : null;
  } catch {
    return null;
  }
}
