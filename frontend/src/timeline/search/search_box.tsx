/** The box that finds slices in all of the recording. */

import { Fragment, h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { viewTitle } from "../../app/router.ts";
import { decimal, plural } from "../../format/numbers.ts";
import { parseFilter } from "../../table/order.ts";
import { currentResult, followSearch, goToResult, searchError } from "./search_navigation.ts";
import { exactParts, queryText, resultCount } from "./search_results.ts";
import { find, search, setFind } from "../state/selection.ts";
import { sources } from "../state/sources.ts";
import { useKeys } from "../../ui/keys.ts";

/** The state of a search: the current result and how many there are. */
function Count() {
  const now = search.value;
  if (!now) return null;
  const states = Object.values(now.answers).map(({ state }) => state);
  const isComplete = states.length === sources.value.length && !states.includes("loading");
  const count = resultCount(now.answers);
  const place = currentResult.value?.position;
  const failed = states.includes("failed") || searchError.value;
  const text = failed
    ? "search failed"
    : !isComplete
    ? "searching…"
    : count === 0
    ? "no results"
    : place
    ? `${decimal(place)} of ${decimal(count)}`
    : plural(count, "result");
  return (
    <span
      class={`count ${count || !isComplete ? "" : "problem"}`}
      role="status"
      data-tip={searchError.value || undefined}
    >
      {text}
    </span>
  );
}

/** Exact values can't be typed as words: they are shown next to the box until they are removed. */
function Exact() {
  const exact = find.value;
  const parts = exact ? exactParts(exact) : [];
  if (!parts.length) return null;
  return (
    <span class="exact" data-tip={parts.map(([name, value]) => `${name}: ${value}`).join("\n")}>
      <span>{queryText(exact!, viewTitle)}</span>
      <button type="button" class="plain" aria-label="Remove this query" onClick={() => setFind(null)}>✕</button>
    </span>
  );
}

const PAUSE_MS = 150;

/** The typed text, which is searched once typing pauses, if its pattern is valid. */
function useTyped() {
  const [typed, type] = useState<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout> | 0>(0);
  const current = String(find.value?.text ?? "");
  useEffect(() => {
    if (!timer.current) type(null); // else somebody went on typing
  }, [find.value]);
  const text = typed ?? current;
  const { problem } = parseFilter(text);
  const stop = () => {
    clearTimeout(timer.current);
    timer.current = 0;
  };
  const settle = (value = text) => {
    stop();
    if (value !== current && !parseFilter(value).problem) setFind(value.trim() ? { text: value } : null);
  };
  const change = (value: string) => {
    type(value);
    stop();
    timer.current = setTimeout(() => settle(value), PAUSE_MS);
  };
  const clear = () => {
    stop();
    type(null);
    setFind(null);
  };
  return { text, problem, change, settle, clear, isSettled: text === current };
}

const TIP = "Slices whose name has all words, in the whole recording; -word excludes, re: starts a regular " +
  "expression. Enter goes to the next result, shift+Enter to the previous one, Escape clears";

/** `/` focuses the box, Enter and shift+Enter go from result to result, Escape clears it. */
export function SearchBox() {
  const box = useRef<HTMLInputElement>(null);
  const { text, problem, change, settle, clear, isSettled } = useTyped();
  useEffect(followSearch, []);
  const goByKey = ({ shiftKey, repeat }: KeyboardEvent) => goToResult(shiftKey ? "previous" : "next", repeat);
  useKeys({ "/": () => box.current?.select(), ...(find.value && { Enter: goByKey }) });
  const byKey = (event: KeyboardEvent) => {
    if (event.key === "Enter") isSettled ? goByKey(event) : settle();
    if (event.key !== "Escape") return;
    clear();
    box.current?.blur();
  };
  return (
    <div class="search" role="search">
      <input
        ref={box}
        type="search"
        value={text}
        placeholder="Find slices: words, -without, re:pattern"
        aria-label="Find slices"
        aria-invalid={problem ? "true" : undefined}
        data-tip={TIP}
        onInput={({ currentTarget: { value } }) => change(value)}
        onKeyDown={byKey}
      />
      <Exact />
      {find.value && (
        <>
          <button type="button" aria-label="Previous result" onClick={() => goToResult("previous")}>↑</button>
          <button type="button" aria-label="Next result" onClick={() => goToResult("next")}>↓</button>
        </>
      )}
      {problem ? <span class="problem" role="alert">Invalid pattern: {problem}</span> : <Count />}
    </div>
  );
}
