/** The names of the search results, and how often they occur. */

import { Fragment, h } from "preact";
import { viewTitle } from "../../app/router.ts";
import { decimal, percent, quantity, shorten } from "../../format/numbers.ts";
import { readableName } from "../../format/readable_names.ts";
import { failures, queryText, resultCount, resultNames } from "./search_results.ts";
import { search, setFind } from "../state/selection.ts";
import { sources } from "../state/sources.ts";

const LONGEST = 120;

function Names({ names, of }: { names: ReturnType<typeof resultNames>; of: number }) {
  const most = names[0]![1];
  return (
    <ol class="names" aria-label="Matching names">
      {names.map(([name, count, total_ns]) => (
        <li key={name} style={{ "--share": (count / most).toFixed(4) }}>
          <button
            type="button"
            class="link"
            data-tip={`${name}\nSearch for these only`}
            onClick={() => setFind({ name })}
          >
            {shorten(readableName(name), LONGEST) || "(no name)"}
          </button>
          <span>{decimal(count)}</span>
          <span class="quiet">{percent(count / of)} %</span>
          <span data-tip="Sum of their durations">{quantity(total_ns, "duration")}</span>
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
        Type into the box above, or press <kbd>/</kbd>: the matching names are listed here.
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
    <div class="results">
      {errors.map(([source, message]) => <p key={source} class="problem" role="alert">{source}: {message}</p>)}
      {!isComplete && <p class="quiet">Searching for {queryLabel} …</p>}
      {isComplete && !count && !errors.length && (
        <p>
          <b>No results</b> for {queryLabel} in the whole recording. All words must be in the name of a slice;{" "}
          <code>re:</code> starts a regular expression.
        </p>
      )}
      {count > 0 && (
        <>
          <p>
            <b>{decimal(count)}</b> {count === 1 ? "slice" : "slices"} for {queryLabel}. <kbd>Enter</kbd>{" "}
            goes to the next one, <kbd>shift</kbd> <kbd>Enter</kbd> to the previous one.
          </p>
          <Names names={names} of={count} />
          {listed < count && <p class="quiet">and {decimal(count - listed)} with rarer names</p>}
        </>
      )}
    </div>
  );
}
