/** The data of a roofline chart: its points, its roofs and its logarithmic scales. */

import type { PictureOf, Table } from "../api/types.ts";

/** A row whose rate is known, and its work per byte unless its work has no FLOPs. */
export interface Mark {
  row: number;
  /** Of a row without FLOPs, a place left of all others: there the memory's roof is its bandwidth times that. */
  intensity: number;
  rate: number;
  time: number;
  /** Bytes per second of a row without FLOPs; else null. */
  byteRate: number | null;
  format: string;
  peakRate: number | null;
  peakBandwidth: number | null;
  /** The rate as a share of the roof at this intensity; null if the roof is unknown. */
  share: number | null;
}

type Numbers = (number | null)[];

const HIGHEST_PLACE = 0.02;

/** The FLOPs per byte at which rows without FLOPs are drawn: a decade left of all that have any; 1 without such rows. */
const placeOfBytes = (intensities: number[]): number =>
  intensities.some((value) => value > 0)
    ? intensities.reduce((least, value) => (value > 0 ? Math.min(least, value / 10) : least), HIGHEST_PLACE)
    : 1;

/** Whether no row has FLOPs: then the rates are those of bytes. */
export const areBytes = (marks: Mark[]): boolean => marks.every(({ byteRate }) => byteRate);

/** The intensity that divides rows without FLOPs from the others, if there are such rows. */
export const divider = (marks: Mark[]): number =>
  marks.reduce((least, { byteRate, intensity }) => (byteRate ? intensity * 10 ** 0.5 : least), 0);

export function marksOf(picture: PictureOf<"roofline">, { data }: Table, rows: Uint32Array): Mark[] {
  const column = (name: string) => data[name] as Numbers;
  const [intensities, rates, times] = [picture.intensity, picture.rate, picture.time].map(column) as [
    Numbers,
    Numbers,
    Numbers,
  ];
  const peakRates = column(picture.peak_rate), bandwidths = column(picture.peak_bandwidth);
  const byteRates = column(picture.byte_rate);
  const place = placeOfBytes(Array.from(rows, (row) => intensities[row] ?? 0));
  return Array.from(rows).flatMap((row) => {
    const byteRate = rates[row] === null ? byteRates[row] ?? null : null;
    const intensity = byteRate ? place : intensities[row] ?? 0, time = times[row] ?? 0;
    const rate = byteRate ? byteRate * place : rates[row] ?? 0;
    if (!(intensity > 0 && rate > 0 && time > 0)) return [];
    const peakRate = peakRates[row] ?? null, peakBandwidth = bandwidths[row] ?? null;
    const roof = peakBandwidth && (byteRate ? Infinity : peakRate);
    const share = roof && rate / Math.min(roof, intensity * peakBandwidth);
    const format = String(data[picture.number_format]?.[row] ?? "");
    return [{ row, intensity, rate, time, byteRate, format, peakRate, peakBandwidth, share }];
  });
}

export interface Roof {
  format: string;
  rate: number;
  bandwidth: number;
}

/** The roofs of all points, that with the most time first; those of work without FLOPs are under any of its device. */
export function roofsOf(marks: Mark[]): Roof[] {
  const roofs = new Map<string, Roof & { time: number }>();
  const hasRates = marks.some(({ peakRate }) => peakRate);
  for (const { format, peakRate, peakBandwidth: bandwidth, time } of marks) {
    const rate = peakRate ?? (hasRates ? null : Infinity); // the memory's alone
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

const FINER = [[1, 2, 5], [1, 1.5, 2, 3, 5, 7]]; // in a decade

/** The powers of ten within a scale, few enough to be labeled; where it has fewer than two, finer values. */
export function decades({ low, high }: Log): number[] {
  const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
  const step = Math.max(1, Math.ceil((last - first + 1) / MOST_DECADES));
  if (last > first) {
    return Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
  }
  const within = FINER.map((factors) =>
    [first - 1, first].flatMap((exponent) => factors.map((factor) => factor * 10 ** exponent))
      .filter((value) => low <= value && value <= high)
  );
  return within.find(({ length }) => length > 1) ?? within[1]!;
}
