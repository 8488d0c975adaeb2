/** Requests for what ran in an area, by worker. */

import { useEffect } from "preact/hooks";
import type { Failed, Loading, Table } from "../../api/types.ts";
import { type ApiRequest, useResources } from "../../app/resource.ts";
import type { Area } from "../model/url_codec.ts";
import { type Source, sources } from "../state/sources.ts";
import { reloadIfChanged, requestOf } from "../state/traces.ts";

export type AreaAnswer = Loading | Failed | Omit<Table, "view">;

/** The workers of an area: those of its tracks, or all shown ones. */
export const workersOf = ({ tracks }: Area): string[] => [
  ...new Set(tracks.length ? tracks.map(({ source }) => source) : sources.value.map(({ id }) => id)),
];

function areaRequest(source: Source, { from, to, tracks }: Area): ApiRequest {
  const own = tracks.length
    ? tracks.filter((place) => place.source === source.id).map(({ track }) => track)
    : source.meta.tracks.map((_, track) => track);
  const [from_ns, to_ns] = [from, to].map((time) => String(Math.round(time - source.shift_ns)));
  return requestOf(source, "timeline/area", { from_ns: from_ns!, to_ns: to_ns!, tracks: own.join(",") });
}

/** What ran in the part of each area that is of one worker. */
export function useAreaAnswers(parts: (readonly [Source, Area])[]): (AreaAnswer | null)[] {
  const requests = parts.map(([source, area]) => areaRequest(source, area));
  const answers = useResources<AreaAnswer>(requests);
  const failed = answers.findIndex((answer) => answer?.state === "failed");
  useEffect(() => {
    if (failed >= 0) reloadIfChanged(answers[failed]!, requests[failed]!);
  }, [answers[failed]]);
  return answers;
}
