/** Asks for tiles in batches, newest wishes first, and keeps those that were seen last. */

import type { Source } from "./state.ts";
import {
  BOXES,
  CURVES,
  type CurveTile,
  type Kind,
  type Lookup,
  type Piece,
  piecesFor,
  span,
  type Tile,
} from "./tiles.ts";

const MOST_ASKED = 3; // requests on their way
const BATCH = 64;
const MOST_BYTES = 96e6;
const KEPT_BYTES = 64e6;
const RETRY_AFTER_MS = 1500;

interface Kept<T> {
  tile: T;
  bytes: number;
  seen: number;
}
interface Wish {
  // deno-lint-ignore no-explicit-any
  layer: Layer<any>;
  track: number;
  level: number;
  index: number;
}

/** The tiles of one source, or of those slices alone that are looked for, or of its counters. */
export class Layer<T> {
  readonly kept = new Map<number, Map<number, Kept<T>>>();
  readonly onTheWay = new Set<string>();

  constructor(
    readonly client: TileClient,
    readonly kind: Kind<T>,
    readonly source: Source,
    readonly find: string,
  ) {}

  /** What of a track to draw in a range of the source's own time; wishes for what is missing. */
  pieces(track: number, level: number, from: number, to: number): Piece<T>[] {
    const lookup: Lookup<T> = (at, index) => {
      const found = this.kept.get(track * 64 + at)?.get(index);
      if (found) found.seen = this.client.now;
      else if (at === level) this.client.wish({ layer: this, track, level, index });
      return found?.tile;
    };
    const pieces = piecesFor(lookup, level, from, to);
    this.wishWhole(track);
    return pieces;
  }

  /** The one tile that spans the whole recording stands in for any other. */
  private wishWhole(track: number) {
    const level = Math.max(3, Math.ceil(Math.log2(Math.max(2, this.source.meta.window[1]))) - 9);
    for (let index = 0; index * span(level) < this.source.meta.window[1]; index++) {
      const found = this.kept.get(track * 64 + level)?.get(index);
      if (found) found.seen = this.client.now;
      else this.client.wish({ layer: this, track, level, index });
    }
  }

  keep({ track, level, index }: Wish, tile: T): number {
    const key = track * 64 + level;
    const known = this.kept.get(key) ?? new Map<number, Kept<T>>();
    this.kept.set(key, known);
    const bytes = this.kind.bytesOf(tile);
    known.set(index, { tile, bytes, seen: this.client.now });
    return bytes;
  }
}

const nameOf = ({ track, level, index }: Wish): string => `${track}.${level}.${index}`;

export class TileClient {
  /** Counts the frames. */
  now = 0;
  /** Why the last request failed; empty after one that came. */
  problem = "";
  // deno-lint-ignore no-explicit-any
  private readonly layers = new Map<string, Layer<any>>();
  private wishes: Wish[] = [];
  private asking = 0;
  private bytes = 0;
  private waits = false;

  constructor(private readonly tell: () => void, private readonly changed: (worker: string) => void) {}

  /** The tiles of a source, all or only of what is looked for. */
  boxes = (source: Source, find = ""): Layer<Tile> => this.layer(BOXES, source, find);

  /** The tiles of a source's counters. */
  curves = (source: Source): Layer<CurveTile> => this.layer(CURVES, source, "");

  private layer<T>(kind: Kind<T>, source: Source, find: string): Layer<T> {
    const key = JSON.stringify([kind.route, source.place, source.stamp, find]);
    const layer = this.layers.get(key) ?? new Layer(this, kind, source, find);
    this.layers.set(key, layer);
    return layer;
  }

  /** Begins a frame: what was wished before and isn't any more is forgotten. */
  begin() {
    this.now++;
    this.wishes = [];
  }

  wish(wish: Wish) {
    if (!wish.layer.onTheWay.has(nameOf(wish))) this.wishes.push(wish);
  }

  /** Whether all is there that was wished for in this frame. */
  get isComplete(): boolean {
    return !this.wishes.length && !this.asking;
  }

  /** Ends a frame: asks for what it lacked. */
  end() {
    while (this.wishes.length && this.asking < MOST_ASKED && !this.waits) {
      const { layer } = this.wishes[0]!;
      const batch = this.wishes.filter((wish) => wish.layer === layer).slice(0, BATCH);
      const taken = new Set(batch);
      this.wishes = this.wishes.filter((wish) => !taken.has(wish));
      void this.ask(layer, batch);
    }
    if (this.bytes > MOST_BYTES) this.forget();
  }

  private async ask<T>(layer: Layer<T>, batch: Wish[]) {
    this.asking++;
    for (const wish of batch) layer.onTheWay.add(nameOf(wish));
    try {
      await this.fetched(layer, batch);
      this.problem = "";
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.pause();
    }
    for (const wish of batch) layer.onTheWay.delete(nameOf(wish));
    this.asking--;
    this.tell();
  }

  private async fetched<T>(layer: Layer<T>, batch: Wish[]) {
    const { source: { place, stamp }, find, kind } = layer;
    const query = { ...place, stamp, k: batch.map(nameOf).join(","), ...(find ? { find } : {}) };
    const response = await fetch(`${kind.route}?${new URLSearchParams(query)}`);
    if (response.headers.get("content-type")?.startsWith("application/json")) {
      const answer = await response.json();
      if (answer.state === "loading") return this.pause();
      if (answer.code === "changed") this.changed(place.worker);
      throw new Error(answer.message ?? "The server sent no tiles.");
    }
    if (!response.ok) throw new Error(`The server answered ${response.status} ${response.statusText} to tiles.`);
    kind.read(await response.arrayBuffer()).forEach((tile, i) => (this.bytes += layer.keep(batch[i]!, tile)));
  }

  /** Asks nothing for a moment, then tells, so that the next frame wishes again. */
  private pause() {
    this.waits = true;
    setTimeout(() => {
      this.waits = false;
      this.tell();
    }, RETRY_AFTER_MS);
  }

  /** Forgets the tiles that weren't seen for longest. */
  private forget() {
    const all = [...this.layers.values()].flatMap(({ kept }) =>
      [...kept.values()].flatMap((known) =>
        [...known].map(([index, { bytes, seen }]) => ({ known, index, bytes, seen }))
      )
    );
    all.sort((a, b) => a.seen - b.seen);
    for (const { known, index, bytes, seen } of all) {
      if (this.bytes <= KEPT_BYTES || seen === this.now) break;
      known.delete(index);
      this.bytes -= bytes;
    }
    for (const [key, { kept }] of this.layers) {
      if (![...kept.values()].some((known) => known.size)) this.layers.delete(key);
    }
  }
}
