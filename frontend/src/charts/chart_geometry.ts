/** The geometry of charts. */

/** The outline of a ring's slice; angles in turns, from the top, clockwise. */
export function slice(start: number, end: number, outer = 100, inner = 62): string {
  const point = (turn: number, radius: number) =>
    `${(radius * Math.sin(turn * 2 * Math.PI)).toFixed(2)} ${(-radius * Math.cos(turn * 2 * Math.PI)).toFixed(2)}`;
  const stop = Math.min(end, start + 0.9999); // an arc that ends where it starts would be none
  const large = stop - start > 0.5 ? 1 : 0;
  return `M${point(start, outer)}A${outer} ${outer} 0 ${large} 1 ${point(stop, outer)}L${
    point(stop, inner)
  }A${inner} ${inner} 0 ${large} 0 ${point(start, inner)}Z`;
}

/** The running sums, starting at 0. */
export function sums(values: number[]): number[] {
  const result = [0];
  for (const value of values) result.push(result.at(-1)! + value);
  return result;
}

/** The next round number. */
export function roundStep(rough: number): number {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.9999)!;
}

/** Round numbers from 0 to at least `largest`, at most `count` steps apart from each other. */
export function ticks(largest: number, count = 5): number[] {
  if (!(largest > 0)) return [0, 1];
  const step = roundStep(largest / count);
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, i) => i * step);
}

export interface Share {
  row: number | null; // null: all rows beyond the largest
  value: number;
}

/** The largest `count` rows by value, and one share for the others. */
export function largest(rows: Uint32Array, values: (number | null)[], count: number): Share[] {
  const positive = Array.from(rows).filter((row) => (values[row] ?? 0) > 0);
  positive.sort((a, b) => values[b]! - values[a]! || a - b);
  const shares: Share[] = positive.slice(0, count).map((row) => ({ row, value: values[row]! }));
  const rest = positive.slice(count).reduce((sum, row) => sum + values[row]!, 0);
  return rest > 0 ? [...shares, { row: null, value: rest }] : shares;
}

/** Which steps to draw when there are more than bars have room: the highest of each group of neighbors. */
export function highestOfEach(totals: number[], room: number): { step: number; of: number }[] {
  const size = Math.max(1, Math.ceil(totals.length / Math.max(1, room)));
  const result = [];
  for (let start = 0; start < totals.length; start += size) {
    const end = Math.min(totals.length, start + size);
    let step = start;
    for (let i = start; i < end; i++) if (totals[i]! > totals[step]!) step = i;
    result.push({ step, of: end - start });
  }
  return result;
}
