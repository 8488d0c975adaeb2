/** The layout of tracks: sources, their processes, threads and streams, and the parts of these. */

import { type Filter, matchesFilter } from "../../table/order.ts";
import type { Counter, Part, Track } from "../../api/timeline_types.ts";
import { applyOrder } from "./reorder.ts";

export const LANE = 18;
const TITLE = 22;
const MINI_LANE = 2;
const MOST_MINI_LANES = 12;
const SHORTEST_LINE = 18;
const GAP = 6;
const CURVE = 30;
const FEW_COUNTERS = 6;

/** The lanes of a track as they are drawn; in a mini one several lanes may share a row. */
export interface Band {
  source: string;
  track: number;
  /** All tracks of the folded thread or process that it stands for. */
  folded: number[];
  part: Part;
  /** From the top of its line. */
  top: number;
  lanes: number;
  rows: number;
  rowHeight: number;
  isMini: boolean;
}

/** A line of the tree, and what is drawn next to it. */
export interface Line {
  /** As the address calls it: what it is, its first track, and the worker if it isn't the main one. */
  id: string;
  kind: "source" | "process" | "axis" | "part" | "counter";
  title: string;
  note: string;
  y: number;
  height: number;
  canFold: boolean;
  isFolded: boolean;
  isPinned: boolean;
  /** The group of siblings among which it can be moved; empty if it can't. */
  group: string;
  /** Whether it holds only annotations of tools. */
  isSecondary: boolean;
  band: Band | null;
  /** The counter that is drawn instead of lanes. */
  curve: { source: string; counter: Counter } | null;
}

export interface TrackLayout {
  pinned: Line[];
  pinnedHeight: number;
  lines: Line[];
  height: number;
}

export interface LayoutTrace {
  id: string;
  tracks: Track[];
  counters: Counter[];
}
export interface LayoutOptions {
  main: string;
  toggled: ReadonlySet<string>;
  /** In their order. */
  pins: string[];
  /** Of siblings the first ones, where these don't stand in their natural order. */
  order: string[];
  filter: Filter;
}

/** A thread or stream: its tracks, by their numbers. */
interface Axis {
  id: string;
  title: string;
  process: string;
  processId: string;
  tracks: number[];
  isDevice: boolean;
}

const PART_TITLES: Record<Part, string> = {
  annotations: "annotations",
  projected: "annotations (projected)",
  calls: "calls",
  work: "work",
  waits: "waits",
  other: "other",
  python: "Python",
};

/** Runs of adjacent items with the same key. */
function runs<T>(items: T[], of: (item: T) => string): T[][] {
  const result: T[][] = [];
  for (const item of items) {
    const last = result.at(-1);
    if (last && of(last[0]!) === of(item)) last.push(item);
    else result.push([item]);
  }
  return result;
}

/** "thread 12 (python)" under "process 12 · python" is its main thread. */
function threadTitle({ name, pid, tid, stream }: Track): string {
  if (stream !== null) return name;
  return pid !== null && pid === tid ? `main ${name.replace(/ \(.*\)$/, "")}` : name;
}

function axesOf({ tracks, id: source }: Pick<LayoutTrace, "id" | "tracks">, main: string): Axis[] {
  const numbers = tracks.map((_, track) => track);
  const end = source === main ? "" : `.${source}`;
  return runs(numbers, (track) => tracks[track]!.process).flatMap((inside) =>
    runs(inside, (track) => tracks[track]!.name).map((of) => {
      const first = tracks[of[0]!]!;
      return {
        id: `a${of[0]}${end}`,
        title: threadTitle(first),
        process: first.process,
        processId: `p${inside[0]}${end}`,
        tracks: of,
        isDevice: first.stream !== null,
      };
    })
  );
}

const sourceId = (source: string, main: string): string => (source === main ? "s" : `s.${source}`);

/** The groups of lines that can be reordered: the workers, the pinned lines, and else by the parent's id. */
const SOURCES = "sources";
export const PINS = "pins";

/** The members of each group in their natural order, including hidden and pinned ones. */
export function groupsOf(sources: LayoutTrace[], main: string): Map<string, string[]> {
  const groups = new Map([[SOURCES, sources.map(({ id }) => sourceId(id, main))]]);
  for (const source of sources) {
    const processes = runs(axesOf(source, main), ({ processId }) => processId);
    groups.set(sourceId(source.id, main), processes.map((axes) => axes[0]!.processId));
    for (const axes of processes) groups.set(axes[0]!.processId, axes.map(({ id }) => id));
  }
  return groups;
}

/** The track that stands for an axis, or for a process, that is folded. */
function foremost(tracks: Track[], numbers: number[]): number {
  const worth = ({ part, slices }: Track) => slices + (part === "work" || part === "calls" ? 2 ** 40 : 0);
  return numbers.reduce((best, track) => worth(tracks[track]!) > worth(tracks[best]!) ? track : best);
}

function band(source: LayoutTrace, track: number, isMini: boolean, folded: number[] = []): Band {
  const { lanes, part } = source.tracks[track]!;
  const rows = isMini ? Math.min(lanes, MOST_MINI_LANES) : lanes;
  const rowHeight = isMini ? (rows < 4 ? Math.floor(12 / rows) : MINI_LANE) : LANE;
  return { source: source.id, track, folded, part, top: 0, lanes, rows, rowHeight, isMini };
}

class Layout {
  readonly lines: Line[] = [];
  y = 0;

  constructor(private readonly options: LayoutOptions) {}

  isFolded(id: string, byDefault: boolean): boolean {
    return byDefault !== this.options.toggled.has(id);
  }

  add(line: Pick<Line, "id" | "kind" | "title"> & Partial<Line>) {
    const inside = line.band ? line.band.rows * line.band.rowHeight : 0;
    const least = line.kind === "part" ? inside : line.kind === "axis" || line.isSecondary ? SHORTEST_LINE : TITLE;
    const height = line.curve ? CURVE : Math.max(inside, least, line.kind === "part" && line.canFold ? 14 : 0);
    if (line.band) line.band.top = line.band.isMini ? Math.floor((height - inside) / 2) : 0;
    const defaults = {
      note: "",
      canFold: false,
      isFolded: false,
      isPinned: false,
      group: "",
      isSecondary: false,
      band: null,
      curve: null,
    };
    this.lines.push({ ...defaults, ...line, y: this.y, height });
    this.y += height + (line.kind === "part" ? 1 : 0);
  }

  axis(source: LayoutTrace, axis: Axis, isQuiet: boolean) {
    const isPinned = this.options.pins.includes(axis.id);
    const isFolded = this.isFolded(axis.id, isQuiet);
    const title = isPinned ? `${axis.title} · ${axis.process}` : axis.title;
    const group = isPinned ? PINS : axis.processId;
    const line = { id: axis.id, kind: "axis" as const, title, isPinned, isFolded, group };
    const canFold = axis.tracks.length > 1 || source.tracks[axis.tracks[0]!]!.lanes > 1;
    if (isFolded) {
      this.add({ ...line, canFold, band: band(source, foremost(source.tracks, axis.tracks), true, axis.tracks) });
    } else {
      axis.tracks.forEach((track, i) => {
        const { part, lanes } = source.tracks[track]!;
        const id = axis.id.replace(/^a\d+/, `t${track}`);
        const canFoldPart = part === "python" || (i > 0 && lanes > 2);
        const isMini = this.isFolded(id, part === "python") && canFoldPart;
        const drawn = band(source, track, isMini);
        if (i === 0 && part !== "python") return this.add({ ...line, canFold, band: drawn });
        if (i === 0) this.add({ ...line, canFold });
        const note = isMini && lanes > 1 ? `${lanes} deep` : "";
        this.add({
          id,
          kind: "part",
          title: PART_TITLES[part],
          note,
          canFold: canFoldPart,
          isFolded: isMini,
          band: drawn,
        });
      });
    }
    this.y += GAP;
  }

  counters(source: LayoutTrace, process: string, list: Counter[], sources: number) {
    if (!list.length) return;
    const id = process.replace(/^p/, "c");
    const isFolded = this.isFolded(id, sources > 1 || list.length > FEW_COUNTERS);
    this.add({ id, kind: "axis", title: "counters", note: String(list.length), canFold: true, isFolded });
    for (const counter of isFolded ? [] : list) {
      const title = counter.stream === null ? counter.name : `${counter.name}, stream ${counter.stream}`;
      this.add({ id: `${id}.${counter.id}`, kind: "counter", title, curve: { source: source.id, counter } });
    }
    this.y += GAP;
  }
}

/** The counters of a device; those of the host are with the process that does most, which comes first. */
function countersOf(source: LayoutTrace, process: Axis[], isFirstHost: boolean): Counter[] {
  const { device } = source.tracks[process[0]!.tracks[0]!]!;
  return source.counters.filter(({ device_index }) =>
    device === null ? device_index === null && isFirstHost : device_index === device
  );
}

/** A process whose threads have neither calls nor work, only annotations of tools. */
const isSecondary = (tracks: Track[], axes: Axis[]): boolean =>
  axes.every((axis) => axis.tracks.every((track) => tracks[track]!.part === "other" && !axis.isDevice));

/** With many sources only devices are open at first, and the thread of each that does most. */
function isQuiet(axis: Axis, at: number, sources: number): boolean {
  return sources > 1 && !axis.isDevice && at > 0;
}

function addSource(layout: Layout, source: LayoutTrace, axes: Axis[], { main, order }: LayoutOptions, sources: number) {
  const processes = runs(axes, ({ processId }) => processId).map((threads) => {
    const isFoldedByDefault = isSecondary(source.tracks, threads), id = threads[0]!.processId;
    return { id, threads, isSecondary: isFoldedByDefault, isFolded: layout.isFolded(id, isFoldedByDefault) };
  });
  const firstHost = processes.find(({ threads, isFolded }) => !threads[0]!.isDevice && !isFolded);
  for (const process of applyOrder(processes, ({ id }) => id, order)) {
    const { id, threads, isSecondary, isFolded } = process;
    const numbers = threads.flatMap(({ tracks }) => tracks);
    const mini = isFolded ? band(source, foremost(source.tracks, numbers), true, numbers) : null;
    const title = threads[0]!.process, group = sourceId(source.id, main);
    layout.add({ id, kind: "process", title, canFold: true, isFolded, isSecondary, group, band: mini });
    if (isFolded) continue;
    const quiet = new Set(threads.filter((axis, at) => isQuiet(axis, at, sources)));
    for (const axis of applyOrder(threads, (axis) => axis.id, order)) layout.axis(source, axis, quiet.has(axis));
    layout.counters(source, id, countersOf(source, threads, process === firstHost), sources);
  }
}

/** All lines with their places, from the top of the pinned ones and of the others. */
export function layoutOf(sources: LayoutTrace[], options: LayoutOptions): TrackLayout {
  const pinned = new Layout(options), others = new Layout(options);
  const { main, pins, order, filter } = options;
  const isPinned = ({ id }: Axis) => pins.includes(id);
  const shown = sources.map((source) => ({
    source,
    id: sourceId(source.id, main),
    axes: axesOf(source, main).filter(({ title, process }) =>
      matchesFilter(filter, `${source.id} ${process} ${title}`)
    ),
  }));
  const pinnedAxes = shown.flatMap(({ source, axes }) => axes.filter(isPinned).map((axis) => ({ source, axis })));
  for (const { source, axis } of applyOrder(pinnedAxes, ({ axis }) => axis.id, pins)) pinned.axis(source, axis, false);
  for (const { source, id, axes } of applyOrder(shown, ({ id }) => id, order)) {
    if (sources.length > 1) {
      const isFolded = others.isFolded(id, false);
      others.add({ id, kind: "source", title: source.id, canFold: true, isFolded, group: SOURCES });
      if (isFolded) continue;
    }
    addSource(others, source, axes.filter((axis) => !isPinned(axis)), options, sources.length);
  }
  return { pinned: pinned.lines, pinnedHeight: pinned.y, lines: others.lines, height: others.y };
}

/** The line whose band shows a track; with `orFolded`, else that of the folded thread or process that it is in. */
export function lineOf({ pinned, lines }: TrackLayout, source: string, track: number, orFolded = false) {
  const ofSource = [...pinned, ...lines].filter(({ band }) => band?.source === source);
  return ofSource.find(({ band }) => band!.track === track) ??
    (orFolded ? ofSource.find(({ band }) => band!.folded.includes(track)) : undefined);
}

/** The folds around a track: its part, its thread, its process, its source. */
export function foldsAround(
  source: Pick<LayoutTrace, "id" | "tracks">,
  track: number,
  options: LayoutOptions,
): string[] {
  const axes = axesOf(source, options.main);
  const axis = axes.find(({ tracks }) => tracks.includes(track));
  if (!axis) return [];
  const end = source.id === options.main ? "" : `.${source.id}`;
  return [`t${track}${end}`, axis.id, axis.processId, sourceId(source.id, options.main)];
}

/** The thread or stream that a line belongs to: itself, or the nearest one above. */
export function axisOf({ pinned, lines }: TrackLayout, line: Line): Line | undefined {
  const all = pinned.includes(line) ? pinned : lines;
  return all.slice(0, all.indexOf(line) + 1).findLast(({ kind }) => kind === "axis");
}
