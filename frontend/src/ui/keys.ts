/** Single-key commands. Components add their own; typing into a field triggers none. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export type Commands = Record<string, (event: KeyboardEvent) => void>;

interface Entry {
  commands: Commands;
  /** The part of the page that they are for; null if they are for all of it. */
  box: RefObject<Element | null> | null;
}

const active: Entry[] = [];
let prefix = "";

/** The element clicked or focused last: of several tables, keys go to the one that contains it. */
let lastUsed: Node | null = null;

const isBefore = (a: Node, b: Node) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;

/** The innermost part in use that handles the key, else the first on the page. */
function entryFor(name: string): Entry | undefined {
  const candidates = active.filter(({ commands }) => name in commands);
  const inBoxes = candidates.filter(({ box }) => box?.current).sort((a, b) =>
    isBefore(a.box!.current!, b.box!.current!) ? -1 : 1
  );
  return inBoxes.findLast(({ box }) => box!.current!.contains(lastUsed)) ?? inBoxes[0] ?? candidates.at(-1);
}

/** Whether a prefix was pressed and a second key is expected. */
export const awaitsSecond = (): boolean => prefix !== "";

/** Whether the element takes typed keys itself. */
export const isField = (target: EventTarget | null) =>
  target instanceof Element && target.closest("input, select, textarea, dialog, [role=slider]") !== null;

function press(event: KeyboardEvent) {
  if (event.ctrlKey || event.metaKey || isField(event.target)) return;
  if (event.key === "Enter" && event.target instanceof Element && event.target.closest("button, summary")) return;
  const withModifier = event.altKey ? `⌥${event.key}` : event.shiftKey && `⇧${event.key}`;
  if (event.altKey && !entryFor(`⌥${event.key}`)) return;
  const name = withModifier && entryFor(withModifier) ? withModifier : prefix + event.key;
  prefix = !prefix && event.key === "g" ? "g " : "";
  const entry = entryFor(name);
  if (!entry) return;
  event.preventDefault();
  entry.commands[name]!(event);
}

/** Makes the commands work while the component is on the page; "g k" is `g`, then `k`. */
export function useKeys(commands: Commands, box: RefObject<Element | null> | null = null) {
  const entry = useRef<Entry>({ commands, box }).current;
  useLayoutEffect(() => {
    entry.commands = commands;
  });
  useLayoutEffect(() => {
    active.push(entry);
    return () => void active.splice(active.indexOf(entry), 1);
  }, []);
}

/** Starts listening. */
export function startKeys() {
  const remember = ({ target }: Event) => void (lastUsed = target as Node);
  document.addEventListener("keydown", press);
  document.addEventListener("pointerdown", remember, true);
  document.addEventListener("focusin", remember, true);
}

/** The letter that opens each entry after `g`: the first free one of its title. */
export function letters(titles: string[]): Map<string, string> {
  const result = new Map<string, string>();
  const free = (letter: string) => /[a-z]/.test(letter) && ![...result.values()].includes(letter);
  for (const title of titles) result.set(title, [...title.toLowerCase()].find(free) ?? "");
  return result;
}
