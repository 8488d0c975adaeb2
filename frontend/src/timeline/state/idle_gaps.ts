/** The idle gaps of devices with their causes: the rows of the view of gaps. */

import { computed } from "@preact/signals";
import type { Table, ViewAnswer } from "../../api/types.ts";
import { resources } from "../../app/resource.ts";
import { viewOfPanel } from "../../app/router.ts";
import { gapLabel, rowOf } from "../model/idle_gaps.ts";
import { isPictured } from "./clocks.ts";
import { traces } from "./traces.ts";

export interface Gap {
  start_ns: number;
  dur_ns: number;
  /** "idle · mostly host in operators · then empty" */
  blame: string;
}

/** The gaps of each device in a table of the view. */
function gapsIn(table: Table): Map<number, Gap[]> {
  const devices = new Map<number, Gap[]>();
  table.data.start_ns?.forEach((start, row) => {
    const of = rowOf(table, row), device = Number(of.device);
    const gap = { start_ns: Number(start), dur_ns: Number(of.dur_ns), blame: gapLabel(of) };
    const list = devices.get(device) ?? [];
    list.push(gap);
    devices.set(device, list);
  });
  for (const list of devices.values()) list.sort((a, b) => a.start_ns - b.start_ns);
  return devices;
}

const parsed = new WeakMap<Table, Map<number, Gap[]>>();

/** The gaps in an answer; each is read once. */
function gapsOf(table: Table): Map<number, Gap[]> {
  const devices = parsed.get(table) ?? gapsIn(table);
  parsed.set(table, devices);
  return devices;
}

const tables = resources<ViewAnswer>(() => {
  const view = viewOfPanel("gaps");
  if (!view || !isPictured.value) return {};
  const withDevice = traces.value.filter(({ meta }) => meta.tracks.some(({ part }) => part === "work"));
  const requests = withDevice.map(({ id, place, stamp }) =>
    [id, { route: "view", query: { ...place, view: view.id }, version: stamp }] as const
  );
  return Object.fromEntries(requests);
}, { atOnce: 1, keepsReady: true }); // after the picture and one after the other, since tiles matter more

/** By source, then device; by start. */
export const idleGaps = computed((): Record<string, Map<number, Gap[]>> => {
  const ready = Object.entries(tables.answers.value).filter(([, { state }]) => state === "ready");
  return Object.fromEntries(ready.map(([id, answer]) => [id, gapsOf(answer as Table)]));
});

/** Starts loading the gaps of the shown traces; returns a function that stops. */
export const startIdleGaps = tables.start;
