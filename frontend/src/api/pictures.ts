/** Helpers for the pictures of tables. */

import type { EntryFacts, Picture, ViewEntry } from "./types.ts";

/** A view that the page alone knows, so that what draws views draws it. */
export const pageView = (id: string, entry: EntryFacts, doc: string): ViewEntry => ({
  id,
  title: entry.title,
  page_title: entry.title,
  entry,
  doc,
  place: { kind: "tab", label: entry.title },
  within: "moments",
  scope: "recording",
  hint: "",
  parameters: [],
  columns: [],
  key: [],
  weight: null,
  picture: null,
  slices: null,
  time: null,
  reference: null,
  shows_path: false,
  comparable_columns: [],
});

/** The columns drawn as bars or bins, and those that rank rows. */
export const chartedColumns = (picture: Picture | null): string[] =>
  picture?.kind === "bars"
    ? picture.lengths
    : picture?.kind === "histogram"
    ? picture.heights
    : picture?.kind === "roofline"
    ? [picture.gap]
    : [];

/** The columns drawn as parts of a whole. */
export const sharedColumns = (picture: Picture | null): string[] =>
  picture?.kind === "tree" ? picture.widths : chartedColumns(picture);
