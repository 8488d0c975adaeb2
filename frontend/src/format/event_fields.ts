/** An event's fields in reading order, with its values as text. */

export type Field = [name: string, text: string];

export interface EventFields {
  /** Null where the event has none. */
  name: string | null;
  category: string | null;
  /** All other fields, in the file's order. */
  fields: Field[];
  args: Field[];
}

const LINE = 80;
const LONGEST = 20_000;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** JSON with short values on one line and one item per line for long ones. */
export function pretty(value: unknown, indent = ""): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? "[]" : "{}";
  const inner = `${indent}  `;
  const items = isList
    ? value.map((item) => pretty(item, inner))
    : Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pretty(item, inner)}`);
  const line = `${open}${items.join(", ")}${close}`;
  if (indent.length + line.length <= LINE && !line.includes("\n")) return line;
  return `${open}\n${items.map((item) => inner + item).join(",\n")}\n${indent}${close}`;
}

/** A value as text: strings without quotes unless they are empty, all else as JSON. */
export const valueText = (value: unknown): string => (typeof value === "string" && value) || pretty(value);

const textOf = (value: unknown) => (value === undefined ? null : valueText(value));

/** The event's fields, each with its text. */
export function eventFields({ name, cat, args, ...others }: Record<string, unknown>): EventFields {
  const listed = (values: Record<string, unknown>): Field[] =>
    Object.entries(values).map(([key, value]) => [key, valueText(value)]);
  const extra = args === undefined || isRecord(args) ? {} : { args };
  return {
    name: textOf(name),
    category: textOf(cat),
    fields: listed({ ...others, ...extra }),
    args: isRecord(args) ? listed(args) : [],
  };
}

/** The part of a text that is drawn, and how many characters that leaves out. */
export function truncateText(text: string): { drawn: string; omitted: number } {
  const drawn = text.length > LONGEST ? text.slice(0, LONGEST) : text;
  return { drawn, omitted: text.length - drawn.length };
}
