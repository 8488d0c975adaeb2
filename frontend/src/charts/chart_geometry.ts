/** The geometry of charts. */

/** The next round number, or the next round integer. */
export function roundStep(rough: number, isWhole = false): number {
  const least = isWhole ? Math.max(1, rough) : rough, power = 10 ** Math.floor(Math.log10(least));
  const sizes = [1, 2, 2.5, 5, 10].map((factor) => factor * power);
  return sizes.find((size) => size >= least * 0.9999 && (!isWhole || Number.isInteger(size)))!;
}

/** Round numbers, or integers, from 0 to at least `largest`, at most `count` steps apart from each other. */
export function ticks(largest: number, count = 5, isWhole = false): number[] {
  if (!(largest > 0)) return [0, 1];
  const step = roundStep(largest / count, isWhole);
  return Array.from({ length: Math.ceil(largest / step - 1e-9) + 1 }, (_, i) => i * step);
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
