/** Times as the timeline writes them. */

import { decimal, quantity } from "../../format/numbers.ts";
import { roundStep } from "../../charts/chart_geometry.ts";

/** "1.234 ms" */
export const duration = (ns: number): string => quantity(ns, "duration");

const UNITS: [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** The times that a ruler marks, round and at least `apart` from each other, and how it writes them. */
export function marks(from: number, to: number, apart: number): { at: number; text: string }[] {
  const step = Math.max(1, roundStep(apart));
  const [size, unit] = UNITS.find(([size]) => step >= size)!;
  const decimals = Number.isInteger(step / size) ? 0 : 1;
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, i) => {
    const at = (first + i) * step;
    return { at, text: `${decimal(at / size, decimals)} ${unit}` };
  });
}
