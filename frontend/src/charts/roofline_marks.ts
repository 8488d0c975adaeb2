/** The data of a roofline chart: its points, its roofs and its logarithmic scales. */

import type { PictureOf, Table } from "../api/types.ts";

/** A row whose rate is known: its FLOPs per second over its FLOPs per byte; or, where no row has FLOPs, its bytes per second over its time. */
export interface Mark {
  row: number;
  kind: "flop_rate" | "byte_rate";
  /** FLOPs per byte; of a row without FLOPs its time. */
  x: number;
  rate: number;
  time: number;
  format: string;
  peakRate: number | null;
  /** The slope of the roof; infinite where rates are those of bytes. */
  peakBandwidth: number | null;
  /** The rate as a share of the roof at this intensity; null if the roof is unknown. */
  share: number | null;
}

type Numbers = (number | null)[];

/** The rows with FLOPs as points; if there are none, those of which the bytes are known. */
export function marksOf(picture: PictureOf<"roofline">, { data }: Table, rows: Uint32Array): Mark[] {
  const column = (name: string) => data[name] as Numbers;
  const times = column(picture.time), peakRates = column(picture.peak_rate);
  const bandwidths = column(picture.peak_bandwidth);
  const marksBy = (kind: Mark["kind"], xs: Numbers, rates: Numbers) =>
    Array.from(rows).flatMap((row): Mark[] => {
      const x = xs[row] ?? 0, rate = rates[row] ?? 0, time = times[row] ?? 0;
      if (!(x > 0 && rate > 0 && time > 0)) return [];
      const bandwidth = bandwidths[row] ?? null, isOfBytes = kind === "byte_rate";
      const peakRate = isOfBytes ? bandwidth : peakRates[row] ?? null;
      const peakBandwidth = isOfBytes ? bandwidth && Infinity : bandwidth;
      const share = peakRate && peakBandwidth && rate / Math.min(peakRate, x * peakBandwidth);
      const format = isOfBytes ? "memory" : String(data[picture.number_format]?.[row] ?? "");
      return [{ row, kind, x, rate, time, format, peakRate, peakBandwidth, share }];
    });
  const marks = marksBy("flop_rate", column(picture.intensity), column(picture.rate));
  return marks.length ? marks : marksBy("byte_rate", times, column(picture.byte_rate));
}

/** The rows that took time and are no points. */
export const rowsLeftOut = (rows: number[], drawn: Set<number>, timeOf: (row: number) => number): number[] =>
  rows.filter((row) => !drawn.has(row) && timeOf(row) > 0);

export interface Roof {
  format: string;
  rate: number;
  bandwidth: number;
}

/** The roofs of all points, that with the most time first. */
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
