/** The names of slices, loaded page by page when one is first drawn. */

import type { LabelPage } from "../../api/timeline_types.ts";
import { addKernelLabels } from "../../format/readable_names.ts";

export const LABELS_PER_PAGE = 16384;

export class Labels {
  readonly texts: string[] = [];
  /** Index into the categories of the trace; 255, which is none, where the page isn't there yet. */
  readonly categories: Uint8Array;
  private readonly requests = new Map<number, Promise<void>>();
  private readonly readable: Record<string, string> = {}; // names by texts
  private loaded = 0; // pages

  constructor(
    readonly size: number,
    private readonly loadPage: (page: number) => Promise<LabelPage | null>,
    private readonly onLoad: () => void,
  ) {
    this.categories = new Uint8Array(size).fill(255);
  }

  /** Whether all pages are here: until then some boxes have no color of their own. */
  get isComplete(): boolean {
    return this.loaded * LABELS_PER_PAGE >= this.size;
  }

  /** The name, or an empty text while its page is loading. */
  text(label: number): string {
    const text = this.texts[label];
    if (text === undefined) void this.request(label);
    return text ?? "";
  }

  /** Loads all pages, one after the other: a box without its label has no color. */
  async requestAll() {
    for (let label = 0; label < this.size; label += LABELS_PER_PAGE) await this.request(label);
    addKernelLabels(this.readable); // also of a trace that was shown before
  }

  /** Loads the page of a label, unless it was requested before. */
  private request(label: number): Promise<void> {
    const page = Math.floor(label / LABELS_PER_PAGE);
    const request = this.requests.get(page) ?? this.load(page);
    this.requests.set(page, request);
    return request;
  }

  private async load(page: number) {
    const answer = await this.loadPage(page);
    if (!answer) return void this.requests.delete(page);
    addKernelLabels(Object.assign(this.readable, answer.labels));
    const first = page * LABELS_PER_PAGE;
    answer.texts.forEach((text, i) => (this.texts[first + i] = text));
    this.categories.set(answer.categories, first);
    this.loaded++;
    this.onLoad();
  }
}
