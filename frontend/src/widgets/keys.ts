/** Single-key commands. Whoever is on the page adds its own; what is typed into a field stays there. */

import { useLayoutEffect } from "preact/hooks";

export type Commands = Record<string, () => void>;

const active: { current: Commands }[] = [];
let prefix = "";

const isField = (target: EventTarget | null) =>
  target instanceof Element && target.closest("input, select, textarea, dialog, [role=slider]") !== null;

function press(event: KeyboardEvent) {
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target)) return;
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("button, summary")) return;
  const name = prefix + event.key;
  prefix = !prefix && event.key === "g" ? "g " : "";
  const commands = active.findLast(({ current }) => name in current);
  if (!commands) return;
  event.preventDefault();
  commands.current[name]!();
}

/** Makes the commands work while the component is on the page; "g k" is `g`, then `k`. */
export function useKeys(commands: Commands) {
  useLayoutEffect(() => {
    const entry = { current: commands };
    active.push(entry);
    return () => void active.splice(active.indexOf(entry), 1);
  });
}

export const startKeys = () => document.addEventListener("keydown", press);

const RESERVED: Record<string, string> = { overview: "o", operators: "p", kernels: "k", health: "h" };

/** The letter that goes to each view after `g`: the reserved one, or the first free one of its title. */
export function letters(views: { id: string; title: string }[]): Map<string, string> {
  const taken = new Set(Object.values(RESERVED));
  const result = new Map<string, string>();
  for (const { id, title } of views) {
    const letter = RESERVED[id] ?? [...title.toLowerCase()].find((c) => /[a-z]/.test(c) && !taken.has(c)) ?? "";
    taken.add(letter);
    result.set(id, letter);
  }
  return result;
}
