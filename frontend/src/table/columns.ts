/** A table prepared for drawing: without empty columns, one scale per column, searchable text joined. */

import type { Column, Table, ViewEntry } from "../api/types.ts";
import formulas from "../../../tb_plugin/kinetoscope_tb/web/formulas.json" with { type: "json" };
import { align, cell, edge, type Kind, label, quantity, type Scale, scaleFor, type Value } from "../format/numbers.ts";
import { idInWords, isReadableOtherwise, labelsVersion, readableName } from "../format/readable_names.ts";
import { sharedColumns } from "../api/pictures.ts";
import { timePart } from "../format/time_parts.ts";
import { inVendorWords, matrixUnits } from "../format/vendor_words.ts";
import { ColumnRanks } from "./order.ts";
import { type Tree, treeOf } from "./tree.ts";

export interface DrawnColumn extends Column {
  title: string;
  values: Value[];
  scale: Scale;
  isNumeric: boolean;
  /** What a full bar in a cell means; null where there are no bars. */
  bar: { of: number; meaning: string } | null;
  isSummed: boolean;
  /** Whether all of many rows have the same value, which is no number: hidden until it is chosen. */
  isConstant: boolean;
  /** The cell's text, if it isn't just the value in the column's scale. */
  shown?: (row: number) => string;
  /** The color of the square before a cell's text. */
  swatch?: (row: number) => string;
  /** The CSS class that gives a cell its color. */
  tone?: (row: number) => string;
  /** Columns of sentences whose own stand below those of this one. */
  below?: DrawnColumn[];
}

export interface Ready {
  columns: DrawnColumn[];
  emptyColumns: DrawnColumn[];
  count: number;
  /** All text columns of each row, as they are and in lower case. */
  texts: string[];
  lower: string[];
  ranks: ColumnRanks;
  /** What to call each row: its key, or in a tree its name. */
  nameOf: (row: number) => string;
  /** The tree of rows; null if the rows are no tree. */
  tree: Tree | null;
}

const NUMERIC = new Set([
  "count",
  "number",
  "instant",
  "duration",
  "bytes",
  "fraction",
  "byte_rate",
  "flop",
  "flop_rate",
]);
const COUNTED = new Set(["calls", "count"]);

/** Sentences, which a table shows whole, on as many lines as they take. */
export const isProse = ({ kind }: Column): boolean => kind === "prose";

/** What a cell of sentences says: its own, and below it those of other columns with their titles. */
export const sentencesOf = ({ values, below = [] }: DrawnColumn, row: number): string[] => [
  String(values[row] ?? "–"),
  ...below.flatMap(({ title, values }) => values[row] == null ? [] : [`*${title}* ${values[row]}`]),
];
export const isText = (column: Column): boolean => isProse(column) || column.kind === "text" || column.kind === "stack";

/** Bars have one scale per column; bars of one length show nothing. */
function bar({ kind }: Column, values: Value[]): DrawnColumn["bar"] {
  const numbers = values.filter((value): value is number => typeof value === "number");
  const of = numbers.reduce((most, value) => Math.max(most, value), 0);
  if (!(of > 0) || numbers.every((value) => value === of)) return null;
  return { of, meaning: `A full bar is the largest value, ${quantity(of, kind)}.` };
}

/** The middle one of the amounts that there are. */
const middleOf = (values: Value[]): number => {
  const amounts = values.filter((value) => typeof value === "number" && value).map((value) => Math.abs(Number(value)));
  return Float64Array.from(amounts).sort()[amounts.length >> 1] ?? 0;
};

/** The unit of the columns that are compared with this one: sums with sums, and means with longest ones. */
function scaleOf({ kind, adds_up, shown_as }: Column, values: Value[], { columns, data }: Table): Scale {
  if (shown_as === "own unit") return scaleFor(kind, values);
  const isZero = values.every((value) => !value); // then the unit of any
  const compared = columns.filter((one) => one.kind === kind && (isZero || one.adds_up === adds_up));
  const all = compared.flatMap(({ name }) => data[name] ?? []), like = scaleFor(kind, all);
  // Up to 10 s in ms: the small values next to a large one would be zeros in seconds.
  const isInMs = kind === "duration" && like.unit === "s" && all.length > 1 &&
    !all.some((value) => Number(value) >= 1e10);
  // And rates up to 10 TB/s in GB/s, next to those of copies from the host.
  const isInMib = kind === "bytes" && like.unit === "GiB" && middleOf(all) < 2 ** 30 / 100;
  if (isInMib) return scaleFor(kind, values, { unit: "MiB", divisor: 2 ** 20, decimals: 1 });
  const isInGb = kind === "byte_rate" && like.unit === "TB/s" && all.some((value) => value && Number(value) < 1e10) &&
    !all.some((value) => Number(value) >= 1e13);
  if (isInGb) return scaleFor(kind, values, { unit: "GB/s", divisor: 1e9, decimals: 1 });
  return scaleFor(kind, values, isInMs ? { unit: "ms", divisor: 1e6, decimals: 1 } : like);
}

/** Whether rows add up: not memory of several devices, nor times that hold each other. */
function rowsAddUp({ kind, name }: Column, { data }: Table, tree: Tree | null): boolean {
  const isShared = (by: string) => new Set(data[by]?.filter((value) => value !== null)).size > 1;
  return kind === "bytes"
    ? !isShared("device")
    : !/^(host|device)_total/.test(name) || Boolean(tree && !isShared("thread"));
}

/** Shapes without the empty ones at the end, which are of arguments that are no tensors. */
const shapes = (value: Value | undefined) => typeof value === "string" ? value.replace(/(, \[\])+\]$/, "]") : "–";

/** Edges of bins go from nanoseconds to seconds: each has a unit of its own. */
const edges = ({ kind }: Column, values: Value[]): Partial<DrawnColumn> => ({
  scale: { unit: "", divisor: 1, decimals: 0 },
  shown: (row) => typeof values[row] === "number" ? edge(values[row], kind) : "–",
});

/** What people call a value. */
export const wordsFor = ({ words }: Column, value: Value | undefined): string =>
  words?.[String(value)] ?? String(value ?? "–");

const readable = (value: Value | undefined) => typeof value === "string" ? readableName(value) : "–";

const timeParts = (values: Value[]): Partial<DrawnColumn> => ({
  shown: (row) => timePart(String(values[row] ?? "–")).name,
  swatch: (row) => values[row] === null ? "transparent" : timePart(String(values[row])).color,
});

const sortedTextsOf = new WeakMap<DrawnColumn, string[]>();

/** The different texts of a column, sorted once. */
export function sortedTexts(column: DrawnColumn): string[] {
  const { values, shown } = column;
  let sorted = sortedTextsOf.get(column);
  if (!sorted) {
    const rows = new Map(values.map((value, row) => [value, row]));
    sorted = [...new Set(Array.from(rows, ([value, row]) => shown?.(row) ?? String(value ?? "")))].sort();
    sortedTextsOf.set(column, sorted);
  }
  return sorted;
}

const FEW = 7; // rows, whose columns are all shown
const EMPTY_LIST = /^\[(?:""(?:, ?"")*)?\]$/;

/** Whether a text is a list without a value, such as those of an operator whose inputs are all tensors. */
const isEmptyList = (value: Value) => typeof value === "string" && EMPTY_LIST.test(value);

function drawColumn(column: Column, table: Table, entry: ViewEntry, tree: Tree | null): DrawnColumn {
  const given = table.data[column.name] ?? [], hasEmptyLists = column.kind === "text" && given.some(isEmptyList);
  const values = hasEmptyLists ? given.map((value) => isEmptyList(value) ? null : value) : given;
  const isNumeric = NUMERIC.has(column.kind);
  const { weight, picture } = entry;
  const shares = [weight, ...sharedColumns(picture)];
  const isEdge = picture?.kind === "histogram" && [picture.lower, picture.upper].includes(column.name);
  const isShare = isNumeric && shares.includes(column.name);
  return {
    ...column,
    title: inVendorWords(label(column.name)),
    doc: inVendorWords(column.doc),
    values,
    scale: scaleOf(column, values, table),
    isNumeric,
    isConstant: isNumeric
      ? picture?.kind === "step_columns" && !values.some(Boolean)
      : values.length > FEW && values.every((value) => value === values[0]),
    bar: isShare && !isEdge ? bar(column, values) : null,
    isSummed: column.adds_up !== false && rowsAddUp(column, table, tree) && picture?.kind !== "heatmap" &&
      (isShare || (!tree && COUNTED.has(column.name))),
    ...(isEdge && edges(column, values)),
    ...(column.kind === "text" && values.some(isReadableOtherwise) &&
      { shown: (row: number) => readable(values[row]) }),
    ...(column.words && { shown: (row: number) => wordsFor(column, values[row]) }),
    ...((column.shown_as === "id" && column.name === entry.key[0]) &&
      { shown: (row: number) => idInWords(String(values[row] ?? "–")) }),
    ...(column.shown_as === "time part" && timeParts(values)),
    ...(column.shown_as === "shapes" && { shown: (row: number) => shapes(values[row]) }),
  };
}

const WHAT: Partial<Record<Kind, string>> = { bytes: " memory", fraction: " share", count: " calls" };

/** Adds the kind to the titles of columns that would have the same title. */
function withUniqueTitles(columns: DrawnColumn[]): DrawnColumn[] {
  const count = (title: string) => columns.filter((column) => column.title === title).length;
  return columns.map((column) =>
    count(column.title) > 1 ? { ...column, title: column.title + (WHAT[column.kind] ?? "") } : column
  );
}

function prepare(table: Table, entry: ViewEntry): Ready {
  const parent = entry.picture?.kind === "tree" ? entry.picture.parent : null;
  const tree = parent === null ? null : treeOf(table.data[parent] ?? []);
  const all = withUniqueTitles(table.columns.map((column) => drawColumn(column, table, entry, tree)));
  const count = all[0]?.values.length ?? 0;
  const isEmpty = ({ values }: DrawnColumn) => count > 0 && values.every((value) => value === null);
  const searched = all.filter(isText);
  const textsOf = ({ values, shown }: DrawnColumn, row: number) => [values[row] ?? "", ...(shown ? [shown(row)] : [])];
  const texts = Array.from(
    { length: count },
    (_, row) => searched.flatMap((column) => textsOf(column, row)).join("\n"),
  );
  const first = all.find(({ kind }) => kind === "text");
  const inKey = ({ name }: DrawnColumn) => !entry.key.length || entry.key.includes(name);
  const isNaming = (column: DrawnColumn) => column.shown_as === "name" || (inKey(column) && column.shown_as !== "hash");
  const namingTexts = all.filter((column) => isText(column) && isNaming(column));
  const nameColumns = tree ? [first!] : namingTexts.length ? namingTexts : all.filter((column) => inKey(column));
  // Operators have the shapes of their inputs, and nothing else of their keys.
  const isOfOperator = ({ shown_as }: DrawnColumn, at: number) => !at || shown_as === "shapes";
  // A row's position in the tree already shows its parent, its path, and what it belongs to.
  const isPlace = ({ name }: DrawnColumn) =>
    tree !== null && name !== first?.name &&
    (name === parent || entry.key.includes(name) || entry.parameters.some((one) => one.name === name));
  const columns = all.filter((column) => !isEmpty(column) && !isPlace(column));
  const naming = tree ? 0 : Math.max(0, columns.findIndex((column) => isText(column) && !column.isConstant));
  // What is equal in all rows names none of them. Sentences come last: before numbers these would be out of sight.
  const order = (column: DrawnColumn, at: number) => isProse(column) ? 2 : +(at < naming && column.isConstant);
  return {
    columns: [0, 1, 2].flatMap((nth) => columns.filter((column, at) => order(column, at) === nth)),
    emptyColumns: all.filter((column) => isEmpty(column) && !isPlace(column)),
    count,
    texts,
    lower: texts.map((text) => text.toLowerCase()),
    ranks: new ColumnRanks(table.data),
    nameOf: rowNamer(entry.picture?.kind === "roofline" ? nameColumns.filter(isOfOperator) : nameColumns, count),
    tree,
  };
}

/** Names rows by the first column, and by as many more as it takes to make the names unique. */
function rowNamer(columns: DrawnColumn[], count: number): (row: number) => string {
  const joinNames = (shown: DrawnColumn[], row: number) =>
    shown.filter(({ values }) => values[row] !== null).map((column) => column.shown?.(row) ?? column.values[row])
      .filter((text) => /[^[\], ]/.test(String(text))).join(" · "); // not the shapes of inputs that have none
  const isUnique = (shown: DrawnColumn[]) =>
    new Set(Array.from({ length: count }, (_, row) => joinNames(shown, row))).size === count;
  let enough: DrawnColumn[] | null = null; // computed with the first name
  return (row) => {
    enough ??= columns.map((_, i) => columns.slice(0, i + 1)).find(isUnique) ?? columns;
    return joinNames(enough, row);
  };
}

const preparedTables = new WeakMap<Table, { ready: Ready; version: string }>();

/** The table ready for drawing; made once for each answer, and again when labels or the vendor's words arrive after it. */
export function prepareTable(table: Table, entry: ViewEntry): Ready {
  const version = labelsVersion.value + matrixUnits.value, cached = preparedTables.get(table);
  if (cached?.version === version) return cached.ready;
  const ready = prepare(table, entry);
  preparedTables.set(table, { ready, version });
  return ready;
}

/** The same without some columns. */
export const omitColumns = (ready: Ready, names: string[]): Ready => ({
  ...ready,
  columns: ready.columns.filter(({ name }) => !names.includes(name)),
});

const FORMULA = new RegExp(formulas.formula, "u"), NUMBER = new RegExp(formulas.number, "u");

/** Keeps a spreadsheet from running a trace's text as a formula; the server has the same rule. */
const escapeFormula = (text: string) => (FORMULA.test(text) && !NUMBER.test(text) ? "'" : "") + text;

const plain = (value: Value | undefined) =>
  value === null || value === undefined ? "" : typeof value === "string" ? escapeFormula(value) : String(value);

/** The rows in base units with the columns' own names, for a spreadsheet's clipboard. */
export function tsv(columns: Column[], data: Table["data"], rows: Uint32Array): string {
  const line = (row: number) => columns.map(({ name }) => plain(data[name]?.[row]).replace(/\s+/g, " ")).join("\t");
  return [columns.map(({ name }) => name).join("\t"), ...Array.from(rows, line)].join("\n");
}

/** The same as a file after RFC 4180. */
export function csv(columns: Column[], data: Table["data"], rows: Uint32Array): string {
  const quoted = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row: number) => columns.map(({ name }) => quoted(plain(data[name]?.[row]))).join(",");
  return [columns.map(({ name }) => name).join(","), ...Array.from(rows, line), ""].join("\r\n");
}

/** The columns with the weight right after the first one, or after several, so that it is in sight on a narrow page. */
export function weightAfter(columns: DrawnColumn[], weight: string | null, count = 1): DrawnColumn[] {
  const is = ({ name }: DrawnColumn) => Number(name === weight);
  return [...columns.slice(0, count), ...columns.slice(count).toSorted((a, b) => is(b) - is(a))];
}

/** How many texts at the beginning name rows together. */
export function leadingNames(columns: DrawnColumn[], key: string[]): number {
  const isName = (column: DrawnColumn) => isText(column) && (column.shown_as === "name" || key.includes(column.name));
  const others = columns.findIndex((column) => !isName(column));
  return others < 0 ? columns.length : Math.max(1, others);
}

const widestOf = new WeakMap<DrawnColumn, string>();

/** The longest text that a column shows, by characters; found once. */
export function widest(column: DrawnColumn): string {
  const text = widestOf.get(column) ?? findWidest(column);
  widestOf.set(column, text);
  return text;
}

function findWidest(column: DrawnColumn): string {
  const { values, kind, scale, shown, below } = column;
  if (below) return values.flatMap((_, row) => sentencesOf(column, row)).reduce((a, b) => b.length > a.length ? b : a);
  if (shown) return values.reduce<string>((most, _, row) => (shown(row).length > most.length ? shown(row) : most), "");
  if (!isText(column)) {
    const numbers = values.filter((value): value is number => typeof value === "number");
    const ends = [numbers.reduce((a, b) => Math.max(a, b), 0), numbers.reduce((a, b) => Math.min(a, b), 0)];
    return ends.map((value) => align(cell(value, kind, scale), scale)).reduce(
      (a, b) => (b.length > a.length ? b : a),
      `<0.${"0".repeat(scale.decimals)}`,
    );
  }
  return values.reduce<string>((most, value) => {
    const text = value === null ? "" : cell(value, kind, scale);
    return text.length > most.length ? text : most;
  }, "");
}
