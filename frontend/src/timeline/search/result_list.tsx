/** The names that were found, and how often. */

import { viewTitle } from "../../app/router.ts";
import { decimal, percent, shorten } from "../../format/numbers.ts";
import { failures, queryText, resultCount, resultNames } from "./search_results.ts";
import { search, setFind } from "../state/selection.ts";
import { sources } from "../state/sources.ts";

const LONGEST = 120;

function Names({ names, of }: { names: [string, number][]; of: number }) {
  const most = names[0]![1];
  return (
    <ol class="names" aria-label="Names found">
      {names.map(([name, count]) => (
        <li key={name} style={{ "--share": (count / most).toFixed(4) }}>
          <button type="button" class="link" data-tip={`${name}\nShow these alone`} onClick={() => setFind({ name })}>
            {shorten(name, LONGEST) || "(no name)"}
          </button>
          <span>{decimal(count)}</span>
          <span class="quiet">{percent(count / of)} %</span>
        </li>
      ))}
    </ol>
  );
}

export function ResultList() {
  const current = search.value;
  if (!current) {
    return (
      <p class="quiet">
        Type into the box above, or press <kbd>/</kbd>: the names that are found stand here then.
      </p>
    );
  }
  const queryLabel = queryText(current.find, viewTitle);
  const errors = failures(current.answers);
  const count = resultCount(current.answers);
  const names = resultNames(current.answers);
  const isComplete = Object.keys(current.answers).length === sources.value.length;
  const listed = names.reduce((sum, [, number]) => sum + number, 0);
  return (
    <div class="found">
      {errors.map(([source, message]) => <p key={source} class="problem" role="alert">{source}: {message}</p>)}
      {!isComplete && <p class="quiet">Searching for {queryLabel} …</p>}
      {isComplete && !count && !errors.length && (
        <p>
          <b>Nothing was found</b> for {queryLabel}, in all of the recording. All words must be in the name of a slice;
          {" "}
          <code>re:</code> begins a pattern.
        </p>
      )}
      {count > 0 && (
        <>
          <p>
            <b>{decimal(count)}</b> {count === 1 ? "slice" : "slices"} for {queryLabel}. <kbd>Enter</kbd>{" "}
            goes to the next one, <kbd>shift</kbd> <kbd>Enter</kbd> to the one before.
          </p>
          <Names names={names} of={count} />
          {listed < count && <p class="quiet">and {decimal(count - listed)} of names that are rarer</p>}
        </>
      )}
    </div>
  );
}
