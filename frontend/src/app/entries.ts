/** The entries of the panel, and the views on the page of each, as the catalogue declares them. */

import type { EntryFacts, ViewEntry } from "../api/types.ts";

export interface Entry extends EntryFacts {
  tabs: ViewEntry[];
  /** The views above the tabs. */
  heads: ViewEntry[];
}

/** The entries in the order of their views. */
export function entriesOf(views: ViewEntry[]): Entry[] {
  const byTitle = Map.groupBy(views, ({ entry }) => entry.title);
  const entries = [...byTitle.values()].map((own) => ({
    ...own[0]!.entry,
    tabs: own.filter(({ place }) => place.kind === "tab"),
    heads: own.filter(({ place }) => place.kind === "head"),
  }));
  return entries.filter(({ tabs }) => tabs.length);
}

/** The tab on which a view is drawn. */
export function tabOf(views: ViewEntry[], id: string): ViewEntry | undefined {
  const view = views.find((one) => one.id === id);
  if (!view || view.place.kind === "tab") return view;
  if (view.place.kind !== "head") return tabOf(views, view.place.of);
  return views.find(({ entry, place }) => entry.title === view.entry.title && place.kind === "tab");
}

export const tabLabel = ({ place, title }: ViewEntry): string => (place.kind === "tab" && place.label) || title;

export interface Absence {
  title: string;
  /** What would record it. */
  hint: string;
  /** The view that says so too. */
  view: string;
}

/** Whether nothing of an entry is in the trace. */
export const isAbsent = ({ tabs }: Entry, missing: Record<string, string>): boolean =>
  tabs.every(({ id }) => id in missing);

/** What the trace lacks: whole entries, and tabs of the others; tabs that one thing would record are one absence. */
export function absences(entries: Entry[], missing: Record<string, string>): Absence[] {
  return entries.flatMap((entry) => {
    const gone = entry.tabs.filter(({ id }) => id in missing);
    if (isAbsent(entry, missing)) return [{ title: entry.title, hint: missing[gone[0]!.id]!, view: gone[0]!.id }];
    return [...Map.groupBy(gone, ({ id }) => missing[id]!)].map(([hint, tabs]) => ({
      title: `${entry.title}: ${tabs.map(tabLabel).join(", ")}`,
      hint,
      view: tabs[0]!.id,
    }));
  });
}
