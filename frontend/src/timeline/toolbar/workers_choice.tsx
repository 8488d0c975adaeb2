/** The choice of the workers that are shown together, and of their alignment. */

import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { retryFailed } from "../../app/resource.ts";
import { stepWord, viewTitle } from "../../app/router.ts";
import { decimal, plural, quantity } from "../../format/numbers.ts";
import { alignmentText, commonSteps } from "../model/alignment.ts";
import { clockText } from "../model/clocks.ts";
import { queryText } from "../search/search_results.ts";
import { alignBy, alignment, isAligning, unaligned } from "../state/alignment.ts";
import { clocks, compareClocks, comparisonProblem, isComparing, isOnRequest } from "../state/clocks.ts";
import { sourceOf, sources } from "../state/sources.ts";
import { listedWorkers, main, reload, shownWorkers, showWorkers, unready } from "../state/traces.ts";
import { Check, Menu } from "../../ui/choice.tsx";
import { ProgressLine } from "../../ui/status.tsx";

/** The choice of the alignment. */
function AlignChoice() {
  const current = alignment.value;
  const steps = commonSteps(sources.value.map(({ meta }) => meta.steps));
  const options: [text: string, title: string][] = [
    ["", "their clocks"],
    ...steps.map((
      step,
    ): [string, string] => [alignmentText({ by: "step", step }), `the start of ${stepWord.value} ${step}`]),
  ];
  const chosen = alignmentText(current);
  if (!options.some(([text]) => text === chosen)) {
    const title = current.by === "step"
      ? `the start of ${stepWord.value} ${current.step} (not in all)`
      : current.by === "collective"
      ? `the end of ${queryText(current.find, viewTitle)}, number ${decimal(current.before + 1)}`
      : "";
    options.push([chosen, title]);
  }
  const pick = (text: string) => alignBy(text ? JSON.parse(text) : { by: "clock" });
  return (
    <Menu
      title="Align by"
      class="align"
      tip="To align by a collective, select one and use the button in its details"
      value={chosen}
      options={options}
      onPick={pick}
    />
  );
}

function Workers({ workers }: { workers: string[] }) {
  const shown = shownWorkers.value;
  const others = workers.filter((worker) => worker !== main.value);
  const toggle = (worker: string, isOn: boolean) =>
    showWorkers(others.filter((one) => one === worker ? isOn : shown.includes(one)));
  return (
    <fieldset>
      <legend>Workers shown</legend>
      <p class="buttons">
        <button type="button" onClick={() => showWorkers(others)}>All {decimal(workers.length)}</button>
        <button type="button" onClick={() => showWorkers([])}>{main.value} alone</button>
      </p>
      <ul>
        {workers.map((worker) => (
          <li key={worker}>
            <Check
              isOn={shown.includes(worker)}
              disabled={worker === main.value}
              set={(isOn) => toggle(worker, isOn)}
            >
              {worker}
              {worker === main.value && <span class="quiet">: times are on its clock</span>}
              <ClockNote worker={worker} />
            </Check>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

/** The accuracy and the source of a worker's clock offset. */
function ClockNote({ worker }: { worker: string }) {
  const meta = sourceOf(worker)?.meta, own = sourceOf(main.value)?.meta;
  const clock = meta && worker !== main.value ? clockText(meta, own, clocks.value[worker]) : null;
  if (!clock) return null;
  return (
    <span class="quiet">
      · {clock.text}
      {clock.error_ns !== null && ` ${quantity(clock.error_ns, "duration")}`}
    </span>
  );
}

/** Shown while alignment is being computed, or if the clocks can't be compared. */
function AlignmentState() {
  if (comparisonProblem.value && !isAligning.value) {
    return (
      <span class="quiet" role="alert" data-tip={comparisonProblem.value}>
        clocks not compared <button type="button" class="link" onClick={retryFailed}>Try again</button>
      </span>
    );
  }
  if (isOnRequest.value && !isAligning.value) {
    const tip = `Infers the clock offsets from the collectives of all ${decimal(listedWorkers.value.length)} workers`;
    return <button type="button" class="link" data-tip={tip} onClick={compareClocks}>Compare clocks</button>;
  }
  if (!isAligning.value && !isComparing.value) return null;
  const why = isAligning.value ? "The alignment is being computed" : "Their clocks are being compared";
  return <span class="quiet" role="status" aria-busy="true" data-tip={`${why}: workers may move`}>aligning…</span>;
}

/** The choice, in a box that opens from a button and closes by Escape or a click elsewhere. */
export function WorkersChoice() {
  const [isOpen, open] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const leave = ({ target }: Event) => void (box.current?.contains(target as Node) || open(false));
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen]);
  const workers = listedWorkers.value;
  if (workers.length < 2) return null;
  const count = shownWorkers.value.length;
  const close = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    open(false);
    box.current?.querySelector("button")?.focus();
  };
  return (
    <div class="workers" ref={box} onKeyDown={close}>
      <button
        type="button"
        aria-expanded={isOpen}
        data-tip="Show several workers of the run above each other, on one clock"
        onClick={() => open(!isOpen)}
      >
        {count === 1
          ? `1 of ${plural(workers.length, "worker")}`
          : `${decimal(count)} of ${plural(workers.length, "worker")}`} <span aria-hidden="true">▾</span>
      </button>{" "}
      <AlignmentState />
      {isOpen && (
        <div class="popover" role="group" aria-label="Workers">
          <Workers workers={workers} />
          {count > 1 && <AlignChoice />}
        </div>
      )}
    </div>
  );
}

/** The state of the workers that aren't drawn. */
export function WorkersState() {
  const waiting = unready.value.filter(([worker]) => worker !== main.value);
  const late = unaligned.value;
  if (!waiting.length && !late.length) return null;
  const shown = shownWorkers.value;
  const without = (worker: string) => showWorkers(shown.filter((one) => one !== worker && one !== main.value));
  return (
    <ul class="worker-states" aria-label="Workers that aren't shown yet">
      {waiting.map(([worker, answer]) => (
        <li key={worker}>
          <b>{worker}</b>
          {answer.state === "loading"
            ? (
              <div class="skeleton">
                <ProgressLine progress={answer.progress} />
              </div>
            )
            : (
              <span role="alert">
                <span class="problem">can't be shown: {answer.message}</span>{" "}
                <button type="button" class="link" onClick={() => reload(worker)}>Try again</button>
              </span>
            )}
          <button type="button" class="link" onClick={() => without(worker)}>Hide it</button>
        </li>
      ))}
      {late.length > 0 && (
        <li>
          <span class="quiet">
            {late.join(", ")} {late.length === 1 ? "has" : "have"} no such time, and stay aligned by their clocks.
          </span>
        </li>
      )}
    </ul>
  );
}
