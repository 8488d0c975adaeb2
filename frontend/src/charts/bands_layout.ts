/** Where bands lie: each on top of those that began before it, and lower as soon as one below it ends. */

export interface Band {
  row: number;
  begin: number;
  end: number;
  height: number;
}

/** A part of a band that stays at its place. */
export interface Piece {
  row: number;
  from: number;
  to: number;
  low: number;
  high: number;
}

/** The highest of the values in each of so many equal parts of a range of time; a value holds until the next time. */
export function highestInParts(times: number[], values: number[], from: number, to: number, parts: number): number[] {
  let row = 0;
  return Array.from({ length: parts }, (_, part) => {
    const [begin, end] = [part, part + 1].map((at) => from + ((to - from) * at) / parts) as [number, number];
    while (times[row + 1]! <= begin) row++;
    let highest = times[row]! < end ? values[row]! : 0;
    while (times[row + 1]! < end) highest = Math.max(highest, values[++row]!);
    return highest;
  });
}

/** The pieces of bands; those that begin at one time lie in their order. */
export function stackBands(bands: Band[]): Piece[] {
  const pieces: Piece[] = [];
  const open: { band: Band; low: number; since: number }[] = []; // from the lowest to the highest
  const ends = bands.filter(({ begin, end }) => end > begin).sort((a, b) => a.end - b.end);
  let next = 0, top = 0;
  const close = ({ band: { row, height }, low, since }: typeof open[number], at: number) => {
    if (at > since) pieces.push({ row, from: since, to: at, low, high: low + height });
  };
  const endUntil = (time: number) => {
    for (; next < ends.length && ends[next]!.end <= time; next++) {
      const { height, end } = ends[next]!, at = open.findIndex(({ band }) => band === ends[next]);
      for (const above of open.slice(at)) {
        close(above, end);
        above.low -= height;
        above.since = end;
      }
      open.splice(at, 1);
      top -= height;
    }
  };
  for (const band of bands.toSorted((a, b) => a.begin - b.begin)) {
    if (band.end <= band.begin) continue;
    endUntil(band.begin);
    open.push({ band, low: top, since: band.begin });
    top += band.height;
  }
  endUntil(Infinity);
  return pieces;
}
