/** The words of views about a trace whose run has other ranks: those of the answer about the run. */

import type { Claim, Summary, Table } from "../api/types.ts";

const WORDS = ["title", "evidence", "action", "saving_ns", "saving_frac", "saving_low_ns", "saving_high_ns"] as const;

/** The views whose rows are claims of the answer, and what these are about. */
export const ABOUT: Record<string, Claim["about"]> = { advice: "recording", run_advice: "run" };

/** Rows that are claims in the words of a summary. */
export function inWordsOf({ verdict, also }: Summary, table: Table): Table {
  const claims = new Map(
    [verdict, ...also].map((claim) => [`${claim.about} ${claim.id} ${claim.filter}`, claim]),
  );
  const { rule, filter } = table.data;
  const names = WORDS.filter((name) => name in table.data);
  const column = (name: typeof WORDS[number]) =>
    rule!.map((id, i) => claims.get(`${ABOUT[table.view]} ${id} ${filter![i] ?? ""}`)?.[name] ?? table.data[name]![i]!);
  return { ...table, data: { ...table.data, ...Object.fromEntries(names.map((name) => [name, column(name)])) } };
}
