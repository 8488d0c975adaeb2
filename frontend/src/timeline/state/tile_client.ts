/** Loads tiles in batches and caches the most recently drawn ones. */

import type { Source } from "./sources.ts";
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
} from "../model/tiles.ts";

const MOST_REQUESTS = 3; // requests on their way
const BATCH = 64;
const MOST_BYTES = 96e6;
const TARGET_BYTES = 64e6;
const RETRY_AFTER_MS = 1500;

interface CachedTile<T> {
  tile: T;
  bytes: number;
  lastUsed: number;
}
interface TileRequest {
  // deno-lint-ignore no-explicit-any
  layer: Layer<any>;
  track: number;
  level: number;
  index: number;
}

/** The tiles of one source: of all slices, of the search results, or of its counters. */
export class Layer<T> {
  readonly tiles = new Map<number, Map<number, CachedTile<T>>>();
  readonly pending = new Set<string>();

  constructor(
    readonly client: TileClient,
    readonly kind: Kind<T>,
    readonly source: Source,
    readonly find: string,
  ) {}

  /** The pieces of a track to draw in a range of the source's own time; requests missing tiles. */
  pieces(track: number, level: number, from: number, to: number): Piece<T>[] {
    const lookup: Lookup<T> = (at, index) => {
      const cached = this.tiles.get(track * 64 + at)?.get(index);
      if (cached) cached.lastUsed = this.client.now;
      else if (at === level) this.client.request({ layer: this, track, level, index });
      return cached?.tile;
    };
    const pieces = piecesFor(lookup, level, from, to);
    this.requestOverview(track);
    return pieces;
  }

  /** The one tile that spans the whole recording stands in for any other. */
  private requestOverview(track: number) {
    const level = Math.max(3, Math.ceil(Math.log2(Math.max(2, this.source.meta.window[1]))) - 9);
    for (let index = 0; index * span(level) < this.source.meta.window[1]; index++) {
      const cached = this.tiles.get(track * 64 + level)?.get(index);
      if (cached) cached.lastUsed = this.client.now;
      else this.client.request({ layer: this, track, level, index });
    }
  }

  store({ track, level, index }: TileRequest, tile: T): number {
    const key = track * 64 + level;
    const byIndex = this.tiles.get(key) ?? new Map<number, CachedTile<T>>();
    this.tiles.set(key, byIndex);
    const bytes = this.kind.bytesOf(tile);
    byIndex.set(index, { tile, bytes, lastUsed: this.client.now });
    return bytes;
  }
}

const nameOf = ({ track, level, index }: TileRequest): string => `${track}.${level}.${index}`;

export class TileClient {
  /** Counts the frames. */
  now = 0;
  /** Why the last request failed; empty after one that came. */
  problem = "";
  // deno-lint-ignore no-explicit-any
  private readonly layers = new Map<string, Layer<any>>();
  private missing: TileRequest[] = [];
  private running = 0;
  private bytes = 0;
  private isPaused = false;

  constructor(private readonly onUpdate: () => void, private readonly onFileChange: (worker: string) => void) {}

  /** The tiles of a source: all slices, or only the search results. */
  boxes = (source: Source, find = ""): Layer<Tile> => this.layer(BOXES, source, find);

  /** The tiles of a source's counters. */
  curves = (source: Source): Layer<CurveTile> => this.layer(CURVES, source, "");

  private layer<T>(kind: Kind<T>, source: Source, find: string): Layer<T> {
    const key = JSON.stringify([kind.route, source.place, source.stamp, find]);
    const layer = this.layers.get(key) ?? new Layer(this, kind, source, find);
    this.layers.set(key, layer);
    return layer;
  }

  /** Begins a frame: requests of the frame before that weren't sent are dropped. */
  begin() {
    this.now++;
    this.missing = [];
  }

  request(request: TileRequest) {
    if (!request.layer.pending.has(nameOf(request))) this.missing.push(request);
  }

  /** Whether all tiles of this frame are loaded. */
  get isComplete(): boolean {
    return !this.missing.length && !this.running;
  }

  /** Ends a frame: sends requests for missing tiles. */
  end() {
    while (this.missing.length && this.running < MOST_REQUESTS && !this.isPaused) {
      const { layer } = this.missing[0]!;
      const batch = this.missing.filter((request) => request.layer === layer).slice(0, BATCH);
      const sent = new Set(batch);
      this.missing = this.missing.filter((request) => !sent.has(request));
      void this.load(layer, batch);
    }
    if (this.bytes > MOST_BYTES) this.evict();
  }

  private async load<T>(layer: Layer<T>, batch: TileRequest[]) {
    this.running++;
    for (const request of batch) layer.pending.add(nameOf(request));
    try {
      await this.fetchBatch(layer, batch);
      this.problem = "";
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
      this.pause();
    }
    for (const request of batch) layer.pending.delete(nameOf(request));
    this.running--;
    this.onUpdate();
  }

  private async fetchBatch<T>(layer: Layer<T>, batch: TileRequest[]) {
    const { source: { place, stamp }, find, kind } = layer;
    const query = { ...place, stamp, k: batch.map(nameOf).join(","), ...(find ? { find } : {}) };
    const response = await fetch(`${kind.route}?${new URLSearchParams(query)}`);
    if (response.headers.get("content-type")?.startsWith("application/json")) {
      const answer = await response.json();
      if (answer.state === "loading") return this.pause();
      if (answer.code === "changed") this.onFileChange(place.worker);
      throw new Error(answer.message ?? "The server sent no tiles.");
    }
    if (!response.ok) throw new Error(`The server answered ${response.status} ${response.statusText} to tiles.`);
    kind.read(await response.arrayBuffer()).forEach((tile, i) => (this.bytes += layer.store(batch[i]!, tile)));
  }

  /** Sends nothing for a moment, then has the frame drawn again. */
  private pause() {
    this.isPaused = true;
    setTimeout(() => {
      this.isPaused = false;
      this.onUpdate();
    }, RETRY_AFTER_MS);
  }

  /** Evicts the least recently used tiles. */
  private evict() {
    const all = [...this.layers.values()].flatMap(({ tiles }) =>
      [...tiles.values()].flatMap((byIndex) =>
        [...byIndex].map(([index, { bytes, lastUsed }]) => ({ byIndex, index, bytes, lastUsed }))
      )
    );
    all.sort((a, b) => a.lastUsed - b.lastUsed);
    for (const { byIndex, index, bytes, lastUsed } of all) {
      if (this.bytes <= TARGET_BYTES || lastUsed === this.now) break;
      byIndex.delete(index);
      this.bytes -= bytes;
    }
    for (const [key, { tiles }] of this.layers) {
      if (![...tiles.values()].some((byIndex) => byIndex.size)) this.layers.delete(key);
    }
  }
}
