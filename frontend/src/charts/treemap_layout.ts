/** Squarified treemaps (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000). */

import type { Rectangle } from "./label_placement.ts";

/** The worst ratio of sides among areas that lie side by side along a length. */
function worst(areas: number[], length: number): number {
  const sum = areas.reduce((total, area) => total + area, 0);
  return Math.max(...areas.map((area) => Math.max((length ** 2 * area) / sum ** 2, sum ** 2 / (length ** 2 * area))));
}

/** A rectangle for each value, with an area in proportion; values are positive and descend. */
export function squarify(values: number[], inside: Rectangle): Rectangle[] {
  const whole = values.reduce((sum, value) => sum + value, 0);
  const scale = (inside.width * inside.height) / whole;
  const placed: Rectangle[] = [];
  let { left, top, width, height } = inside;
  for (let first = 0; first < values.length;) {
    const length = Math.min(width, height);
    const strip = [values[first]! * scale];
    while (first + strip.length < values.length) {
      const next = [...strip, values[first + strip.length]! * scale];
      if (worst(next, length) > worst(strip, length)) break;
      strip.push(next.at(-1)!);
    }
    const thick = strip.reduce((sum, area) => sum + area, 0) / length;
    let at = 0;
    for (const area of strip) {
      const long = area / thick;
      placed.push(
        width >= height
          ? { left, top: top + at, width: thick, height: long }
          : { left: left + at, top, width: long, height: thick },
      );
      at += long;
    }
    if (width >= height) [left, width] = [left + thick, width - thick];
    else [top, height] = [top + thick, height - thick];
    first += strip.length;
  }
  return placed;
}
