/** Where each track stands: sources, their processes, in these threads and streams, in these their parts. */

import { type Filter, isLetThrough } from "../order.ts";
import type { Counter, Part, Track } from "./model.ts";

export const LANE = 18;
const TITLE = 22;
const MINI_LANE = 2;
const MOST_MINI_LANES = 12;
const SHORTEST_LINE = 18;
const GAP = 6;
const CURVE = 30;
const FEW_COUNTERS = 4;

/** The lanes of a track as they are drawn; in a mini one several lanes may share a row. */
export interface Band {
  source: string;
  track: number;
  part: Part;
  /** From the top of its line. */
  top: number;
  lanes: number;
  rows: number;
  rowHeight: number;
  isMini: boolean;
}

/** A line of the tree, and what is drawn beside it. */
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
  /** Whether it holds nothing but marks of tools. */
  isAside: boolean;
  band: Band | null;
  /** The counter that is drawn instead of lanes. */
  curve: { source: string; counter: Counter } | null;
}

export interface Laid {
  pinned: Line[];
  pinnedHeight: number;
  lines: Line[];
  height: number;
}

export interface Drawn {
  id: string;
  tracks: Track[];
  counters: Counter[];
}
export interface Wishes {
  main: string;
  turned: ReadonlySet<string>;
  pins: string[];
  filter: Filter;
}

/** A thread or stream: its tracks, by their numbers. */
interface Axis {
  id: string;
  title: string;
  process: string;
  tracks: number[];
  isDevice: boolean;
}

const WORDS: Record<Part, string> = {
  annotations: "annotations",
  calls: "calls",
  work: "work",
  waits: "waits",
  other: "other",
  python: "Python",
};

/** Runs of tracks that share what `of` says of them. */
function runs<T>(items: T[], of: (item: T) => string): T[][] {
  const found: T[][] = [];
  for (const item of items) {
    const last = found.at(-1);
    if (last && of(last[0]!) === of(item)) last.push(item);
    else found.push([item]);
  }
  return found;
}

/** "thread 12 (python)" under "process 12 · python" is its main thread. */
function threadTitle({ name, pid, tid, stream }: Track): string {
  if (stream !== null) return name;
  return pid !== null && pid === tid ? `main ${name.replace(/ \(.*\)$/, "")}` : name;
}

function axesOf({ tracks, id: source }: Pick<Drawn, "id" | "tracks">, main: string): Axis[] {
  const numbers = tracks.map((_, track) => track);
  const end = source === main ? "" : `.${source}`;
  return runs(numbers, (track) => JSON.stringify([tracks[track]!.process, tracks[track]!.name])).map((of) => {
    const first = tracks[of[0]!]!;
    const isDevice = first.stream !== null;
    return { id: `a${of[0]}${end}`, title: threadTitle(first), process: first.process, tracks: of, isDevice };
  });
}

/** The track that stands for an axis, or for a process, that is folded. */
function foremost(tracks: Track[], numbers: number[]): number {
  const worth = ({ part, slices }: Track) => slices + (part === "work" || part === "calls" ? 2 ** 40 : 0);
  return numbers.reduce((best, track) => worth(tracks[track]!) > worth(tracks[best]!) ? track : best);
}

function band(source: Drawn, track: number, isMini: boolean): Band {
  const { lanes, part } = source.tracks[track]!;
  const rows = isMini ? Math.min(lanes, MOST_MINI_LANES) : lanes;
  const rowHeight = isMini ? (rows < 4 ? Math.floor(12 / rows) : MINI_LANE) : LANE;
  return { source: source.id, track, part, top: 0, lanes, rows, rowHeight, isMini };
}

class Layout {
  readonly lines: Line[] = [];
  y = 0;

  constructor(private readonly wishes: Wishes) {}

  isFolded(id: string, byDefault: boolean): boolean {
    return byDefault !== this.wishes.turned.has(id);
  }

  add(line: Pick<Line, "id" | "kind" | "title"> & Partial<Line>) {
    const inside = line.band ? line.band.rows * line.band.rowHeight : 0;
    const least = line.kind === "part" ? inside : line.kind === "axis" || line.isAside ? SHORTEST_LINE : TITLE;
    const height = line.curve ? CURVE : Math.max(inside, least, line.kind === "part" && line.canFold ? 14 : 0);
    if (line.band) line.band.top = line.band.isMini ? Math.floor((height - inside) / 2) : 0;
    const defaults = {
      note: "",
      canFold: false,
      isFolded: false,
      isPinned: false,
      isAside: false,
      band: null,
      curve: null,
    };
    this.lines.push({ ...defaults, ...line, y: this.y, height });
    this.y += height + (line.kind === "part" ? 1 : 0);
  }

  axis(source: Drawn, axis: Axis, isQuiet: boolean) {
    const isPinned = this.wishes.pins.includes(axis.id);
    const isFolded = this.isFolded(axis.id, isQuiet);
    const title = isPinned ? `${axis.title} · ${axis.process}` : axis.title;
    const line = { id: axis.id, kind: "axis" as const, title, isPinned, isFolded };
    const canFold = axis.tracks.length > 1 || source.tracks[axis.tracks[0]!]!.lanes > 1;
    if (isFolded) {
      this.add({ ...line, canFold, band: band(source, foremost(source.tracks, axis.tracks), true) });
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
        this.add({ id, kind: "part", title: WORDS[part], note, canFold: canFoldPart, isFolded: isMini, band: drawn });
      });
    }
    this.y += GAP;
  }

  counters(source: Drawn, process: string, list: Counter[], sources: number) {
    if (!list.length) return;
    const id = process.replace(/^p/, "c");
    const isFolded = this.isFolded(id, sources > 1 || list.length > FEW_COUNTERS);
    this.add({ id, kind: "axis", title: "counters", note: String(list.length), canFold: true, isFolded });
    for (const counter of isFolded ? [] : list) {
      const title = counter.stream === null ? counter.name : `${counter.name} ${counter.stream}`;
      this.add({ id: `${id}.${counter.id}`, kind: "counter", title, curve: { source: source.id, counter } });
    }
    this.y += GAP;
  }
}

/** The counters of a device; those of the host are with the process that does most, which comes first. */
function countersOf(source: Drawn, process: Axis[], isFirstHost: boolean): Counter[] {
  const { device } = source.tracks[process[0]!.tracks[0]!]!;
  return source.counters.filter(({ device_index }) =>
    device === null ? device_index === null && isFirstHost : device_index === device
  );
}

/** A process whose threads have neither calls nor work: marks that tools left. */
const isAside = (tracks: Track[], axes: Axis[]): boolean =>
  axes.every((axis) => axis.tracks.every((track) => tracks[track]!.part === "other" && !axis.isDevice));

/** With many sources only devices are open at first, and the thread of each that does most. */
function isQuiet(axis: Axis, at: number, sources: number): boolean {
  return sources > 1 && !axis.isDevice && at > 0;
}

function lay(layout: Layout, source: Drawn, axes: Axis[], sources: number) {
  let hadHost = false;
  for (const process of runs(axes, (axis) => axis.process)) {
    const id = process[0]!.id.replace(/^a/, "p");
    const numbers = process.flatMap(({ tracks }) => tracks);
    const aside = isAside(source.tracks, process);
    const isFolded = layout.isFolded(id, aside);
    const mini = isFolded ? band(source, foremost(source.tracks, numbers), true) : null;
    layout.add({
      id,
      kind: "process",
      title: process[0]!.process,
      canFold: true,
      isFolded,
      isAside: aside,
      band: mini,
    });
    if (isFolded) continue;
    process.forEach((axis, at) => layout.axis(source, axis, isQuiet(axis, at, sources)));
    const isFirstHost: boolean = !hadHost && !process[0]!.isDevice;
    hadHost ||= isFirstHost;
    layout.counters(source, id, countersOf(source, process, isFirstHost), sources);
  }
}

/** All lines with their places, from the top of the pinned ones and of the others. */
export function layoutOf(sources: Drawn[], wishes: Wishes): Laid {
  const pinned = new Layout(wishes), others = new Layout(wishes);
  for (const source of sources) {
    const axes = axesOf(source, wishes.main).filter(({ title, process }) =>
      isLetThrough(wishes.filter, `${source.id} ${process} ${title}`)
    );
    const isHeld = ({ id }: Axis) => wishes.pins.includes(id);
    for (const axis of axes.filter(isHeld)) pinned.axis(source, axis, false);
    if (sources.length > 1) {
      const id = `s${source.id === wishes.main ? "" : `.${source.id}`}`;
      const isFolded = others.isFolded(id, false);
      others.add({ id, kind: "source", title: source.id, canFold: true, isFolded });
      if (isFolded) continue;
    }
    lay(others, source, axes.filter((axis) => !isHeld(axis)), sources.length);
  }
  return { pinned: pinned.lines, pinnedHeight: pinned.y, lines: others.lines, height: others.y };
}

/** The line whose band shows a track; a folded part or axis shows none of its other tracks. */
export const lineOf = ({ pinned, lines }: Laid, source: string, track: number): Line | undefined =>
  [...pinned, ...lines].find(({ band }) => band?.source === source && band.track === track);

/** What to turn so that a track is open: its part, its thread, its process, its source. */
export function foldsAround(source: Pick<Drawn, "id" | "tracks">, track: number, wishes: Wishes): string[] {
  const axes = axesOf(source, wishes.main);
  const axis = axes.find(({ tracks }) => tracks.includes(track));
  if (!axis) return [];
  const process = runs(axes, ({ process }) => process).find((of) => of.includes(axis))!;
  const end = source.id === wishes.main ? "" : `.${source.id}`;
  return [`t${track}${end}`, axis.id, process[0]!.id.replace(/^a/, "p"), `s${end}`];
}

/** The thread or stream that a line belongs to: itself, or the nearest one above. */
export function axisOf({ pinned, lines }: Laid, line: Line): Line | undefined {
  const all = pinned.includes(line) ? pinned : lines;
  return all.slice(0, all.indexOf(line) + 1).findLast(({ kind }) => kind === "axis");
}
