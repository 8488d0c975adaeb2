/** Places labels next to points so that none lies over another, over a point, or over a line. */

export interface Rectangle {
  left: number;
  top: number;
  width: number;
  height: number;
}
export interface Point {
  x: number;
  y: number;
  radius: number;
}
/** From where to where a line goes: x, y, x, y. */
export type Segment = [number, number, number, number];

const GAP = 4;
const PIECE = 6; // pixels
const SIDES = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, 1], [1, -1], [-1, -1]] as const;

export const overlap = (a: Rectangle, b: Rectangle): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
export const isFree = (place: Rectangle, busy: Rectangle[]): boolean => !busy.some((other) => overlap(other, place));

/** The rectangle around a point. */
export const around = ({ x, y, radius }: Point): Rectangle => ({
  left: x - radius,
  top: y - radius,
  width: 2 * radius,
  height: 2 * radius,
});

/** The rectangle around a line. */
const boxOf = ([x1, y1, x2, y2]: Segment): Rectangle => ({
  left: Math.min(x1, x2),
  top: Math.min(y1, y2),
  width: Math.abs(x2 - x1),
  height: Math.abs(y2 - y1),
});

/** A line as small rectangles. */
export function piecesOf([x1, y1, x2, y2]: Segment): Rectangle[] {
  const count = Math.ceil(Math.hypot(x2 - x1, y2 - y1) / PIECE);
  const at = (i: number) => [x1 + (x2 - x1) * i / count, y1 + (y2 - y1) * i / count] as const;
  return Array.from({ length: count }, (_, i) => boxOf([...at(i), ...at(i + 1)]));
}

/** At the sides and the corners of a point. */
const places = ({ x, y, radius }: Point, width: number, height: number): Rectangle[] =>
  SIDES.map(([right, down]) => {
    const aside = (radius + GAP) * (right && down ? Math.SQRT1_2 : 1);
    const left = x + right * aside + (right - 1) * width / 2, top = y + down * aside + (down - 1) * height / 2;
    return { left, top, width, height };
  });

/**
 * Where labels go; null where there is no room.
 *
 * @param sizes Of the labels, the most important first.
 * @param points The points that they label, in the same order; further ones have none.
 * @param inside No label leaves it.
 * @param occupied What no label covers: points and lines.
 */
export function placeLabels(
  sizes: { width: number; height: number }[],
  points: Point[],
  inside: Rectangle,
  occupied: Rectangle[],
): (Rectangle | null)[] {
  const busy = [...occupied];
  return sizes.map(({ width, height }, i) => {
    const place = places(points[i]!, width, height).find((place) =>
      place.left >= inside.left && place.top >= inside.top && place.left + width <= inside.left + inside.width &&
      place.top + height <= inside.top + inside.height && isFree(place, busy)
    ) ?? null;
    if (place) {
      busy.push(place);
    }
    return place;
  });
}
