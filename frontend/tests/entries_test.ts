import { deepStrictEqual as same } from "node:assert/strict";
import { pageView } from "../src/api/pictures.ts";
import type { Place, ViewEntry } from "../src/api/types.ts";
import { absences, entriesOf, tabOf } from "../src/app/entries.ts";

function view(id: string, title: string, place: Place): ViewEntry {
  return { ...pageView(id, { title, question: "", section: "", figure: null }, ""), title: id, place };
}
const tab = (id: string, title: string, label: string) => view(id, title, { kind: "tab", label });

const VIEWS = [
  tab("overview", "Overview", "Summary"),
  tab("kernels", "Kernels", "Kernels"),
  tab("graphs", "Kernels", "Graphs"),
  tab("counters", "Kernels", "Counters"),
  view("gpus", "Kernels", { kind: "head" }),
  view("durations", "Kernels", { kind: "part", of: "graphs" }),
  view("stacks", "Kernels", { kind: "detail", of: "durations", also: [] }),
  view("lonely", "Annotations", { kind: "part", of: "missing" }),
];

Deno.test("entries are in the order of their views, and have tabs", () => {
  const entries = entriesOf(VIEWS).map(({ title, tabs, heads }) => [title, tabs.length, heads.length]);
  same(entries, [["Overview", 1, 0], ["Kernels", 3, 1]]);
});

Deno.test("every view opens on a tab", () => {
  same(VIEWS.map(({ id }) => tabOf(VIEWS, id)?.id), [
    ...["overview", "kernels", "graphs", "counters"],
    ...["kernels", "graphs", "graphs", undefined],
  ]);
  same(tabOf(VIEWS, "nothing"), undefined);
});

Deno.test("an entry is absent as a whole, and tabs that one thing would record are one absence", () => {
  const entries = entriesOf(VIEWS);
  same(absences(entries, {}), []);
  same(absences(entries, { gpus: "none", stacks: "none" }), []);
  same(absences(entries, { graphs: "Record a GPU.", counters: "Record a GPU." }), [
    { title: "Kernels: Graphs, Counters", hint: "Record a GPU.", view: "graphs" },
  ]);
  same(absences(entries, { kernels: "Record a GPU.", graphs: "Capture.", counters: "Sample." }), [
    { title: "Kernels", hint: "Record a GPU.", view: "kernels" },
  ]);
});
