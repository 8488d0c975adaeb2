/**
 * The order of siblings in the tree, where the user moved some.
 *
 * The order names, of each group of siblings, the first ones; all others follow
 * in their natural order. So it stays short, and holds for threads that another filter or recording shows.
 */

/** The items with those that the order names first. */
export function applyOrder<T>(items: T[], idOf: (item: T) => string, order: string[]): T[] {
  const place = new Map(order.map((id, i) => [id, i]));
  const of = (item: T) => place.get(idOf(item)) ?? order.length;
  return [...items].sort((a, b) => of(a) - of(b));
}

/** The list with one of it right before another, or at the end. */
export function insertBefore(list: string[], id: string, before: string | null): string[] {
  const others = list.filter((one) => one !== id);
  const at = before === null ? others.length : others.indexOf(before);
  return at < 0 ? list : [...others.slice(0, at), id, ...others.slice(at)];
}

/** The order with a sibling right before another, or last; it names no more of the group than necessary. */
export function moveSibling(natural: string[], order: string[], id: string, before: string | null): string[] {
  const next = insertBefore(applyOrder(natural, (one) => one, order), id, before);
  const nth = new Map(natural.map((one, i) => [one, i]));
  let named = next.length;
  while (named && (named === next.length || nth.get(next[named - 1]!)! < nth.get(next[named]!)!)) named--;
  return [...order.filter((one) => !nth.has(one)), ...next.slice(0, named)];
}

/** Where a sibling is, with all that is in it. */
export interface Span {
  id: string;
  top: number;
  bottom: number;
}

/** Before whom something goes that is dropped at a height, and where that is: null after all of them. */
export function dropAt(siblings: Span[], y: number): { before: string | null; top: number } {
  const next = siblings.find(({ top, bottom }) => y < (top + bottom) / 2);
  return next ? { before: next.id, top: next.top } : { before: null, top: siblings.at(-1)?.bottom ?? 0 };
}
