/** Requests for what ran in an area, by worker. */

import { useEffect } from "preact/hooks";
import type { Failed, Loading, Query, Table } from "../../api/types.ts";
import { type ApiRequest, useResources } from "../../app/resource.ts";
import type { Area } from "../model/url_codec.ts";
import { type Source, sources } from "../state/sources.ts";
import { reloadIfChanged, requestOf } from "../state/traces.ts";

export type AreaAnswer = Loading | Failed | Omit<Table, "view">;

/** The workers of an area: those of its tracks, or all shown ones. */
export const workersOf = ({ tracks }: Area): string[] => [
  ...new Set(tracks.length ? tracks.map(({ source }) => source) : sources.value.map(({ id }) => id)),
];

/** The process in which Kineto writes the recording itself as a slice. */
const RECORDING = "Spans";

function areaRequest(source: Source, { from, to, tracks }: Area, { route, query }: ApiRequest): ApiRequest {
  const own = tracks.length
    ? tracks.filter((place) => place.source === source.id).map(({ track }) => track)
    : [...source.meta.tracks.keys()].filter((track) => source.meta.tracks[track]!.pid !== RECORDING);
  const [from_ns, to_ns] = [from, to].map((time) => String(Math.round(time - source.shift_ns)));
  const where: Query = route === COUNTERS.route ? {} : { tracks: own.join(",") };
  return requestOf(source, route, { from_ns: from_ns!, to_ns: to_ns!, ...where, ...query });
}

export const BY_NAME: ApiRequest = { route: "timeline/area", query: {} };
export const COUNTERS: ApiRequest = { route: "timeline/area/counters", query: {} };

/** The answers about the part of each area that is of one worker. */
export function useAreaAnswers<T extends { state: string } = AreaAnswer>(
  parts: (readonly [Source, Area])[],
  about = BY_NAME,
): (T | Failed | null)[] {
  const requests = parts.map(([source, area]) => areaRequest(source, area, about));
  const answers = useResources<T>(requests);
  const failed = answers.findIndex((answer) => answer?.state === "failed");
  useEffect(() => {
    if (failed >= 0) reloadIfChanged(answers[failed]!, requests[failed]!);
  }, [answers[failed]]);
  return answers;
}
