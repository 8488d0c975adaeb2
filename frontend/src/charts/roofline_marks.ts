/** The data of a roofline chart: its points, its roofs and its logarithmic scales. */

import type { PictureOf, Table } from "../api/types.ts";

/** A row whose work per byte and rate are known. */
export interface Mark {
  row: number;
  intensity: number;
  rate: number;
  time: number;
  format: string;
  peakRate: number | null;
  peakBandwidth: number | null;
  /** The rate as a share of the roof at this intensity; null if the roof is unknown. */
  share: number | null;
}

type Numbers = (number | null)[];

export function marksOf(picture: PictureOf<"roofline">, { data }: Table, rows: Uint32Array): Mark[] {
  const column = (name: string) => data[name] as Numbers;
  const [intensities, rates, times] = [picture.intensity, picture.rate, picture.time].map(column) as [
    Numbers,
    Numbers,
    Numbers,
  ];
  const peakRates = column(picture.peak_rate), bandwidths = column(picture.peak_bandwidth);
  return Array.from(rows).flatMap((row) => {
    const intensity = intensities[row] ?? 0, rate = rates[row] ?? 0, time = times[row] ?? 0;
    if (!(intensity > 0 && rate > 0 && time > 0)) return [];
    const peakRate = peakRates[row] ?? null, peakBandwidth = bandwidths[row] ?? null;
    const share = peakRate && peakBandwidth ? rate / Math.min(peakRate, intensity * peakBandwidth) : null;
    const format = String(data[picture.number_format]?.[row] ?? "");
    return [{ row, intensity, rate, time, format, peakRate, peakBandwidth, share }];
  });
}

export interface Roof {
  format: string;
  rate: number;
  bandwidth: number;
}

/** The roofs of all points, that with the most time first. */
export function roofsOf(marks: Mark[]): Roof[] {
  const roofs = new Map<string, Roof & { time: number }>();
  for (const { format, peakRate: rate, peakBandwidth: bandwidth, time } of marks) {
    if (!rate || !bandwidth) continue;
    const key = `${format} ${rate} ${bandwidth}`;
    const roof = roofs.get(key) ?? { format, rate, bandwidth, time: 0 };
    roof.time += time;
    roofs.set(key, roof);
  }
  return [...roofs.values()].sort((a, b) => b.time - a.time);
}

export interface Log {
  low: number;
  high: number;
  /** The place of a value in pixels. */
  at: (value: number) => number;
}

/** A logarithmic scale over some positive values, with room at both ends. */
export function logScale(values: number[], start: number, end: number): Log {
  const exponents = values.map(Math.log10);
  const low = Math.min(...exponents) - 0.3, high = Math.max(...exponents) + 0.3;
  return {
    low: 10 ** low,
    high: 10 ** high,
    at: (value) => start + ((Math.log10(value) - low) / (high - low)) * (end - start),
  };
}

const MOST_DECADES = 8;

/** The powers of ten within a scale, few enough to be labeled. */
export function decades({ low, high }: Log): number[] {
  const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
  const step = Math.max(1, Math.ceil((last - first + 1) / MOST_DECADES));
  return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
}
