/** The gaps in which a device did nothing, and whose fault they are: the rows of the view of gaps. */

import { effect, signal } from "@preact/signals";
import { type Failed, follow, type Table, type ViewAnswer } from "../api.ts";
import { shortName } from "./lettering.ts";
import { type Source, sources } from "./state.ts";

export interface Gap {
  start_ns: number;
  dur_ns: number;
  /** "host late: aten::empty" */
  blame: string;
}

/** By source, then device; by start. */
export const gaps = signal<Record<string, Map<number, Gap[]>>>({});

function blameOf(cause: unknown, host: unknown, op: unknown): string {
  const why = cause === "host late" && host ? `host late, ${host}` : String(cause ?? "");
  return op ? `${why} · then ${shortName(String(op))}` : why;
}

/** The gaps of each device in a table of the view. */
export function gapsIn({ data }: Pick<Table, "data">): Map<number, Gap[]> {
  const found = new Map<number, Gap[]>();
  data.start_ns?.forEach((start, row) => {
    const device = Number(data.device?.[row]);
    const blame = blameOf(data.cause?.[row], data.host?.[row], data.op?.[row]);
    const gap = { start_ns: Number(start), dur_ns: Number(data.dur_ns?.[row]), blame };
    const list = found.get(device) ?? [];
    list.push(gap);
    found.set(device, list);
  });
  for (const list of found.values()) list.sort((a, b) => a.start_ns - b.start_ns);
  return found;
}

async function ask({ id, place, meta }: Source, stop: AbortSignal) {
  if (!meta.tracks.some(({ part }) => part === "work")) return;
  await follow<ViewAnswer>("view", { ...place, view: "gaps" }, (answer: ViewAnswer | Failed) => {
    if (answer.state === "ready") gaps.value = { ...gaps.peek(), [id]: gapsIn(answer) };
  }, stop);
}

/** Keeps the gaps of what is drawn, until it is told to stop; asks for one after the other, since tiles matter more. */
export function followGaps(): () => void {
  const stop = new AbortController();
  const asked = new Map<string, string>();
  let isAsking = false;
  const askForAll = async () => {
    if (isAsking) return;
    isAsking = true;
    const next = () => sources.peek().find(({ id, stamp }) => asked.get(id) !== stamp);
    for (let source = next(); source && !stop.signal.aborted; source = next()) {
      asked.set(source.id, source.stamp);
      await ask(source, stop.signal);
    }
    isAsking = false;
  };
  const end = effect(() => {
    const drawn = new Set(sources.value.map(({ id }) => id));
    for (const id of asked.keys()) {
      if (drawn.has(id)) continue;
      asked.delete(id);
      const { [id]: _, ...others } = gaps.peek();
      gaps.value = others;
    }
    void askForAll();
  });
  return () => {
    stop.abort();
    end();
    gaps.value = {};
  };
}
