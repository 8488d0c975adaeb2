/** The words of advice about a trace whose run has other ranks. */

import type { Summary, Table } from "../api/types.ts";

const OF_RUN = ["title", "evidence", "action", "saving_ns", "saving_frac", "saving_low_ns", "saving_high_ns"] as const;

/** Advice in the words of a summary. */
export function inWordsOf({ verdict, also }: Summary, advice: Table): Table {
  const claims = new Map([verdict, ...also].map((claim) => [`${claim.about} ${claim.id}`, claim]));
  const column = (name: typeof OF_RUN[number]) =>
    advice.data.rule!.map((rule, i) => claims.get(`recording ${rule}`)?.[name] ?? advice.data[name]![i]!);
  const data = Object.fromEntries(OF_RUN.map((name) => [name, column(name)]));
  return { ...advice, data: { ...advice.data, ...data } };
}
