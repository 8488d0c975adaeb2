/** What is asked about an area, and of whom. */

import type { Failed, Loading, Table } from "../api.ts";
import type { Question } from "./asking.ts";
import type { Area } from "./places.ts";
import { type Source, sources } from "./state.ts";

export type AreaAnswer = Loading | Failed | Omit<Table, "view">;

/** The workers that an area is of: those of its tracks, or all that are shown. */
export const workersOf = ({ tracks }: Area): string[] => [
  ...new Set(tracks.length ? tracks.map(({ source }) => source) : sources.value.map(({ id }) => id)),
];

/** What ran in the part of an area that is of one worker. */
export function questionOf(source: Source, { from, to, tracks }: Area): Question {
  const own = tracks.length
    ? tracks.filter((place) => place.source === source.id).map(({ track }) => track)
    : source.meta.tracks.map((_, track) => track);
  const [from_ns, to_ns] = [from, to].map((time) => String(Math.round(time - source.shift_ns)));
  return { source, route: "timeline/area", query: { from_ns: from_ns!, to_ns: to_ns!, tracks: own.join(",") } };
}
