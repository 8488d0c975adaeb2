/** Places labels next to points so that none lies over another. */

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

const GAP = 4;
const DOT = 6; // pixels of radius

export const overlap = (a: Rectangle, b: Rectangle): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

/** The rectangle around a point. */
export const around = ({ x, y, radius }: Point): Rectangle => ({
  left: x - radius,
  top: y - radius,
  width: 2 * radius,
  height: 2 * radius,
});

/** Where no label goes because of points: a label of a large one may cover a dot. */
export const uncovered = (points: Point[]): Rectangle[] => points.filter(({ radius }) => radius > DOT).map(around);

/** Right, left, below and above a point. */
function places({ x, y, radius }: Point, width: number, height: number): Rectangle[] {
  const aside = radius + GAP;
  return [
    { left: x + aside, top: y - height / 2 },
    { left: x - aside - width, top: y - height / 2 },
    { left: x - width / 2, top: y + aside },
    { left: x - width / 2, top: y - aside - height },
  ].map((place) => ({ ...place, width, height }));
}

/**
 * Where the labels of some points go; null where there is no room.
 *
 * @param points The points to label, the most important first.
 * @param sizes Of their labels.
 * @param inside No label leaves it.
 * @param occupied What no label covers, such as large points; those with labels aren't covered in any case.
 */
export function placeLabels(
  points: Point[],
  sizes: { width: number; height: number }[],
  inside: Rectangle,
  occupied: Rectangle[],
): (Rectangle | null)[] {
  const busy = [...occupied, ...points.map(around)];
  return points.map((point, i) => {
    const { width, height } = sizes[i]!;
    const isFree = (place: Rectangle) =>
      place.left >= inside.left && place.top >= inside.top && place.left + width <= inside.left + inside.width &&
      place.top + height <= inside.top + inside.height && !busy.some((other) => overlap(other, place));
    const place = places(point, width, height).find(isFree) ?? null;
    if (place) busy.push(place);
    return place;
  });
}
