/** Where a table's rows lie, in pixels; rows of sentences are as high as these need. */

export const ROW = 26;
export const LINE = 18; // of sentences
const AROUND = 8; // above the first of their lines, below the last, and the line between rows

/** How many lines a text takes that is broken between words, and within those that are wider than the room. */
export function linesOf(text: string, room: number, widthOf: (text: string) => number): number {
  const space = widthOf(" ");
  let lines = 1, used = 0;
  for (const word of text.split(" ")) {
    const width = widthOf(word);
    if (used > 0 && used + space + width > room) {
      lines++;
      used = 0;
    }
    used += (used > 0 ? space : 0) + width;
    if (used > room && room > 0) {
      const more = Math.ceil(used / room) - 1;
      lines += more;
      used -= more * room;
    }
  }
  return lines;
}

/** Pixels of a row with sentences of so many lines. */
export const heightOf = (lines: number): number => Math.max(ROW, lines * LINE + AROUND);

/** Where the rows lie. */
export class Layout {
  /** The upper edge of each row and, last, the lower one of all; null: all are of one height. */
  readonly #edges: Float64Array | null = null;

  /** `heights` is by place; null: every row is ROW high. */
  constructor(readonly count: number, heights: number[] | null) {
    if (!heights) return;
    this.#edges = new Float64Array(count + 1);
    heights.forEach((height, place) => this.#edges![place + 1] = this.#edges![place]! + height);
  }

  top(place: number): number {
    return this.#edges ? this.#edges[Math.min(place, this.count)]! : place * ROW;
  }

  height(place: number): number {
    return this.top(place + 1) - this.top(place);
  }

  /** The place of the row at a height. */
  at(y: number): number {
    if (!this.#edges) return Math.floor(y / ROW);
    let low = 0, high = this.count;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.#edges[middle]! <= y) low = middle;
      else high = middle;
    }
    return low;
  }
}
