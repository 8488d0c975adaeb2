/** A part of a row of things, such as the steps that are drawn: from the first to before the last. */

export interface Range {
  from: number;
  to: number;
}

/** The range in a text such as "12-40", clamped to the count; everything where the text is none. */
export function parseRange(text: string | undefined, count: number): Range {
  const [, from, to] = /^(\d+)-(\d+)$/.exec(text ?? "") ?? [];
  const range = { from: Number(from), to: Math.min(count, Number(to)) };
  return range.from < range.to ? range : { from: 0, to: count };
}

/** The range as long as before, moved by so many as far as there are any. */
export function shiftRange({ from, to }: Range, by: number, count: number): Range {
  const shift = Math.max(-from, Math.min(by, count - to));
  return { from: from + shift, to: to + shift };
}

/** The range scaled by a factor; `around` stays in place if it can. */
export function zoomRange({ from, to }: Range, factor: number, around: number, count: number): Range {
  const length = Math.min(count, Math.max(2, Math.round((to - from) * factor)));
  const target = Math.round(around - ((around - from) / (to - from)) * length);
  const first = Math.max(0, Math.min(target, count - length));
  return { from: first, to: first + length };
}
