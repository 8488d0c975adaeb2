/** Numbers and names as people read them. Inside there are nanoseconds, bytes and fractions; here alone they get a unit. */

import { stackLine } from "./stacks.ts";

export type Kind =
  | "text"
  | "stack"
  | "prose"
  | "bool"
  | "id"
  | "count"
  | "number"
  | "instant"
  | "duration"
  | "bytes"
  | "fraction"
  | "byte_rate"
  | "flop"
  | "flop_rate";
export type Value = string | number | boolean | null;

/** One unit for everything that is compared with each other, such as a column. */
export interface Scale {
  unit: string;
  divisor: number;
  /** At most. */
  decimals: number;
  /** Significant digits, at most; three if absent. */
  digits?: number;
}

const THIN_SPACE = "\u202f";
const FIGURE_SPACE = "\u2007", POINT_SPACE = "\u2008"; // as wide as a digit, and as a point
const MISSING = "–";
const DIGITS = 3;
const INSTANT_DIGITS = 4; // of the last one: what tells neighbors apart are the last digits, so all have its decimals
const MOST_DECIMALS = 4;
const SMALLER = 2; // decimals that smaller values in a column have beyond those of the largest

const UNITS: Partial<Record<Kind, [string, number][]>> = {
  duration: [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]],
  bytes: [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]],
};
UNITS.instant = UNITS.duration;

const decimalUnits = (unit: string): [string, number][] =>
  ["P", "T", "G", "M", "k", ""].map((prefix, i) => [prefix + unit, 10 ** (15 - 3 * i)]);
UNITS.byte_rate = decimalUnits("B/s");
UNITS.flop = decimalUnits("FLOP");
UNITS.flop_rate = decimalUnits("FLOP/s");

const BASE_UNITS: Partial<Record<Kind, string>> = {
  duration: " ns",
  instant: " ns",
  bytes: " bytes",
  byte_rate: " bytes/s",
  flop: " FLOP",
  flop_rate: " FLOP/s",
};

/** How many decimals make so many significant digits. */
const decimalsOf = (value: number, digits = DIGITS): number =>
  Math.max(0, digits - 1 - Number(value.toExponential().split("e")[1]));

/** Of a share of a whole. */
export const PERCENT: Scale = { unit: "%", divisor: 0.01, decimals: 1 };

/** The largest and the smallest amount of some values other than 0, and whether all are whole. */
function extentOf(values: Iterable<Value>) {
  let largest = 0, smallest = Infinity, isWhole = true;
  for (const value of values) {
    if (typeof value !== "number" || !value) continue;
    largest = Math.max(largest, Math.abs(value));
    smallest = Math.min(smallest, Math.abs(value));
    isWhole &&= Number.isInteger(value);
  }
  return { largest, smallest: Math.min(smallest, largest), isWhole };
}

/**
 * The scale in which the largest of `values` reads best; in it, smaller values have a little more decimals.
 *
 * With `like`, its unit, unless the largest has less than a hundredth of that unit.
 */
export function scaleFor(kind: Kind, values: Iterable<Value>, like?: Scale): Scale {
  if (kind === "fraction") return PERCENT;
  const { largest, smallest, isWhole } = extentOf(values);
  const units = UNITS[kind];
  if (like && largest && largest < like.divisor / 100) like = undefined;
  const [unit, divisor] = !units
    ? ["", 1] as const
    : like
    ? [like.unit, like.divisor] as const
    : units.find(([, size]) => largest >= size) ?? units.at(-1)!;
  if (units ? divisor === 1 : isWhole) return { unit, divisor, decimals: 0 };
  if (kind === "instant") {
    const decimals = Math.min(MOST_DECIMALS, decimalsOf(largest / divisor, INSTANT_DIGITS));
    return { unit, divisor, decimals, digits: Infinity };
  }
  const most = Math.min(MOST_DECIMALS, decimalsOf(largest / divisor) + SMALLER);
  return { unit, divisor, decimals: Math.min(most, decimalsOf(smallest / divisor)) };
}

/** A plain number: thin spaces between thousands, a true minus, at most so many decimals, and no zeros at their end. */
export function decimal(value: number, decimals = 0): string {
  const [whole, padded = ""] = Math.abs(value).toFixed(decimals).split(".") as [string, string?];
  const rest = padded.replace(/0+$/, "");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE) : whole;
  return `${value < 0 ? "−" : ""}${grouped}${rest && `.${rest}`}`;
}

/** The number in the scale, without its unit; "<0.1" for an amount that rounds to zero but isn't, "≈0" for less than none. */
export function scaled(value: number, { unit, divisor, decimals, digits }: Scale): string {
  const smallest = 10 ** -decimals;
  const shown = value / divisor;
  if (value && Math.abs(shown) < smallest / 2) return value < 0 ? "≈0" : `<${decimal(smallest, decimals)}`;
  if (unit === "%" && shown > 99.9 && shown < 100) return "99.9"; // only a whole is 100 %
  return decimal(shown, Math.min(decimals, decimalsOf(shown, digits)));
}

/** A number as it stands in a column: its point below those of the others. */
export function align(text: string, { decimals }: Scale): string {
  if (!decimals || !/\d$/.test(text)) return text;
  const [, rest = ""] = text.split(".");
  return text + (rest ? "" : POINT_SPACE) + FIGURE_SPACE.repeat(Math.max(0, decimals - rest.length));
}

/** A cell of a table. */
export function cell(value: Value | undefined, kind: Kind, scale: Scale): string {
  if (value === null || value === undefined) return MISSING;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return kind === "stack" ? stackLine(value) : value;
  return kind === "id" ? String(value) : scaled(value, scale);
}

/** A single value in its own best unit: "98.6 ms". */
export function quantity(value: number | null | undefined, kind: Kind): string {
  if (value === null || value === undefined) return MISSING;
  const scale = scaleFor(kind, [value]);
  return scale.unit ? `${scaled(value, scale)} ${scale.unit}` : scaled(value, scale);
}

/** Such as "6.9 to 8.1 ms"; 0 has no unit. `names/text.py` has the same rule. */
export function timeRange(low: number, high: number): string {
  const least = quantity(low, "duration"), most = quantity(high, "duration"), [number, unit] = least.split(" ");
  return `${!low || most.endsWith(` ${unit}`) ? number : least} to ${most}`;
}

/** A round value, such as an edge of a bin, with no more digits than it has: "20 µs". */
export function edge(value: number, kind: Kind): string {
  const { unit, divisor } = scaleFor(kind, [value]);
  return `${Number((value / divisor).toPrecision(4))} ${unit}`.trim();
}

/** The value as recorded, with its base unit. */
export function exact(value: Value | undefined, kind: Kind): string {
  if (value === null || value === undefined) return "not recorded";
  if (typeof value !== "number") return cell(value, kind, { unit: "", divisor: 1, decimals: 0 });
  if (kind === "fraction") return `${(100 * value).toPrecision(8).replace(/\.?0+$/, "")} %`;
  const digits = Number.isInteger(value) ? decimal(value) : String(Number(value.toPrecision(10)));
  return digits + (BASE_UNITS[kind] ?? "");
}

export const percent = (fraction: number | null | undefined): string =>
  fraction === null || fraction === undefined ? MISSING : scaled(fraction, PERCENT);

const UPPER = new Set(["gpu", "cpu", "sm", "tc", "id", "flops"]);

const titles = new Map<string, string>();

/** Calls columns what the catalogue calls them. */
export function setTitles(columns: { name: string; title?: string }[]): void {
  for (const { name, title } of columns) if (title) titles.set(name, title);
}

/** "device_self_ns" → "Device self"; the unit is shown separately. */
export function label(name: string): string {
  const title = titles.get(name);
  if (title) return title;
  const words = name.replace(/_(ns|bytes|frac|bytes_per_s|flop|flop_per_s)$/, "").split("_").map((word) =>
    UPPER.has(word) ? word.toUpperCase() : word
  );
  const text = words.join(" ").replace(/^dur\b/, "duration").replace("first byte", "file offset");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Leaves out the middle: the ends of a C++ name are most distinctive. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text;
  const tail = Math.floor((length - 1) * 0.4);
  return `${text.slice(0, length - 1 - tail)}…${tail ? text.slice(-tail) : ""}`;
}

/** The size of a file, in the units of file managers. */
export function fileSize(bytes: number): string {
  const [unit, size] = ([["GB", 1e9], ["MB", 1e6]] as const).find(([, size]) => bytes >= size) ?? ["KB", 1e3];
  const shown = bytes / size;
  return `${shown < 10 ? decimal(shown, 1) : decimal(shown)} ${unit}`;
}

/** How many characters two texts share at their start. */
export function sharedStart(a: string, b: string): number {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length++;
  return length;
}

/** The share of two names that is the same: from their start, or of their words. */
export function nameLikeness(a: string, b: string): number {
  const [words, others] = [a, b].map((name) => [...new Set(name.split(/[\W_]+/))]) as [string[], string[]];
  const same = words.filter((word) => others.includes(word)).length;
  return Math.max(
    sharedStart(a, b) / Math.max(a.length, b.length, 1),
    same / Math.max(words.length, others.length),
  );
}

/** The text cut by `cut`, so that it still differs from others that would look the same: then without their start. */
export function cutApart(text: string, others: string[], cut: (text: string) => string): string {
  const short = cut(text);
  const alike = others.filter((other) => other !== text && cut(other) === short);
  if (!alike.length) return short;
  const shared = Math.max(...alike.map((other) => sharedStart(text, other)));
  return cut(`…${text.slice(Math.max(0, shared - 2))}`);
}

/** The place of the first of some sorted texts that isn't before another text. */
function placeIn(sorted: string[], text: string): number {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * A text in so many letters, by its beginning and, behind a gap, by what tells it from all others that begin so: its own
 * beginning alone if that is enough. The others are sorted, and the text is one of them.
 */
export function cutAmong(sorted: string[], text: string, length: number): string {
  const at = placeIn(sorted, text), shared = [sorted[at - 1] ?? "", sorted[at + 1] ?? ""];
  const most = Math.max(...shared.map((other) => sharedStart(text, other)));
  if (text.length <= length) return text;
  if (most < length - 1) return `${text.slice(0, length - 1)}…`;
  const room = length - 3, ending = Math.floor(0.6 * room), begin = text.slice(0, room - ending);
  const first = sorted[placeIn(sorted, begin)]!, last = sorted[placeIn(sorted, `${begin}\uffff`) - 1]!;
  const least = Math.min(sharedStart(text, first), sharedStart(text, last));
  const from = text.length - least < ending || most - least < ending - 4 ? least : most;
  const rest = text.slice(Math.max(0, Math.min(from - 1, text.length - 4)));
  const end = rest.length > ending ? `${rest.slice(0, ending - 1)}…` : rest;
  return `${text.slice(0, room - end.length).trimEnd()} … ${end.trimStart()}`;
}

export const plural = (count: number, noun: string): string => `${decimal(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Keeps numbers and their units on one line. */
export const unbroken = (text: string) => text.replace(/(\d) (?=%|[nµm]?s\b|[KMGT]i?B\b)/g, "$1\u00a0");
