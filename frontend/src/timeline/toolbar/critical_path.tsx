/** The choice of the critical path, and the state of the one across ranks. */

import { Fragment, h } from "preact";
import type { CrossRankSegment, PathSegment, Shares, SharesAnswer, SliceSummary } from "../../api/timeline_types.ts";
import { crossRankPathView, openView } from "../../app/router.ts";
import { decimal, plural } from "../../format/numbers.ts";
import { duration } from "../model/times.ts";
import {
  cyclePath,
  pathFailures,
  type PathKind,
  pathKind,
  pathKinds,
  paths,
  piecesOn,
  shares,
  showPath,
} from "../state/critical_paths.ts";
import { sourceOf } from "../state/sources.ts";
import { main, shownWorkers, showWorkers } from "../state/traces.ts";
import { scrollTarget, viewport } from "../state/viewport_state.ts";
import { ProgressLine } from "../../ui/status.tsx";

const TITLES: Record<PathKind, string> = { none: "", own: "of each worker", across: "across ranks" };
const MOST_SHOWN = 8; // workers that are named
const MOST_HIDDEN = 3;

/** Switches the path on and off; with several workers, also chooses which. */
export function PathChoice() {
  const kind = pathKind.value, kinds = pathKinds.value.filter((one) => one !== "none");
  return (
    <>
      <button
        type="button"
        class="turn"
        aria-pressed={kind !== "none"}
        data-tip={kinds.length > 1
          ? "The work that determined each step's duration: on each worker, then across ranks, then none (C)"
          : "The work that determined each step's duration (C)"}
        onClick={cyclePath}
      >
        Critical path
      </button>
      {kind !== "none" && kinds.length > 1 && (
        <select
          aria-label="Which critical path"
          value={kind}
          onChange={({ currentTarget: { value } }) => showPath(value as PathKind)}
        >
          {kinds.map((one) => <option key={one} value={one}>{TITLES[one]}</option>)}
        </select>
      )}
    </>
  );
}

/** The state of the path across ranks, and how much of it lies on hidden workers. */
export function PathState() {
  const failed = Object.entries(pathFailures.value);
  const answer = pathKind.value === "across" ? shares.value ?? { state: "loading" as const, progress: null } : null;
  if (!answer && !failed.length) return null;
  return (
    <ul class="worker-states" aria-label="The critical path">
      {answer && <AcrossState answer={answer} />}
      {failed.map(([worker, message]) => (
        <li key={worker} role="alert" class="problem">{worker}: no critical path: {message}</li>
      ))}
    </ul>
  );
}

function AcrossState({ answer }: { answer: SharesAnswer }) {
  if (answer.state === "ready") return <SharesState answer={answer} />;
  if (answer.state === "missing") return <li>No path across ranks: {answer.hint}</li>;
  if (answer.state === "failed") return <li role="alert" class="problem">{answer.message}</li>;
  return (
    <li>
      <b>Path across ranks</b>
      <div class="skeleton">
        <ProgressLine progress={answer.progress} />
      </div>
    </li>
  );
}

/** Scrolls to the longest visible segment of the path on a worker. */
function scrollToPath(worker: string) {
  const { from, to } = viewport.peek(), shift = sourceOf(worker)?.shift_ns ?? 0;
  const longest = (paths.peek()[worker] ?? []).filter(({ slice }) => slice).map((piece) => {
    const visible_ns = Math.min(piece.to_ns + shift, to) - Math.max(piece.from_ns + shift, from);
    return { visible_ns, summary: piece.slice! };
  }).reduce<{ visible_ns: number; summary: SliceSummary } | null>(
    (best, one) => best && best.visible_ns >= one.visible_ns ? best : one,
    null,
  );
  if (longest) scrollTarget.value = { source: worker, summary: longest.summary };
}

function SharesState({ answer: { shares: all, notes } }: { answer: Shares }) {
  const workers = shownWorkers.value;
  const shown = all.filter(({ worker }) => workers.includes(worker));
  const hidden = all.filter(({ worker }) => !workers.includes(worker));
  const onPath = new Set([main.value, ...all.map(({ worker }) => worker)]);
  const isOther = onPath.size !== workers.length || workers.some((worker) => !onPath.has(worker));
  return (
    <>
      {!all.length && <li class="quiet">The path across ranks has no part in the visible range.</li>}
      {shown.length > 0 && (
        <li>
          <span>In the visible range the path lies on</span>
          {shown.slice(0, MOST_SHOWN).map(({ worker, path_ns }, i) => (
            <span key={worker}>
              <button type="button" class="link" data-tip="Scroll to it" onClick={() => scrollToPath(worker)}>
                {worker}
              </button>{" "}
              for {duration(path_ns)}
              {i < shown.length - 1 && ","}
            </span>
          ))}
          {shown.length > MOST_SHOWN && <span>and {plural(shown.length - MOST_SHOWN, "other")}</span>}
        </li>
      )}
      <Hidden hidden={hidden} />
      {all.length > 0 && isOther && (
        <li>
          <button
            type="button"
            class="link"
            data-tip={`And ${main.value}, whose clock it is`}
            onClick={() => showWorkers([...onPath].slice(1))}
          >
            Show only the ranks on the path
          </button>
        </li>
      )}
      {notes.map((note) => <li key={note} class="quiet">{note}</li>)}
    </>
  );
}

/** The hidden workers on the path: without them it has gaps. */
function Hidden({ hidden }: { hidden: Shares["shares"] }) {
  const others = hidden.slice(MOST_HIDDEN), table = crossRankPathView.value;
  const rest = others.reduce((sum, { path_ns }) => sum + path_ns, 0);
  const show = (worker: string) => showWorkers([...shownWorkers.value.filter((one) => one !== main.value), worker]);
  return (
    <>
      {hidden.slice(0, MOST_HIDDEN).map(({ worker, path_ns }) => (
        <li key={worker}>
          <span>The path lies on {worker}, not shown, for {duration(path_ns)} of the visible range.</span>
          <button type="button" class="link" onClick={() => show(worker)}>Show it</button>
        </li>
      ))}
      {others.length > 0 && (
        <li>
          <span>… and on {plural(others.length, "other worker")}, not shown, for {duration(rest)}.</span>
          {table && <button type="button" class="link" onClick={() => openView(table.id)}>{table.title}</button>}
        </li>
      )}
    </>
  );
}

const isAcross = (piece: PathSegment | CrossRankSegment): piece is CrossRankSegment => "step" in piece;

/** Describes the drawn path on a slice. */
export function PathText({ source, slice }: { source: string; slice: number }) {
  const pieces = piecesOn(source, slice), longest = pieces[0];
  if (!longest) return null;
  const { part, reason, from_ns, to_ns } = longest;
  const more = pieces.length > 1 ? ` (the longest of ${decimal(pieces.length)} visible pieces)` : "";
  return (
    <>
      <p>
        {isAcross(longest) ? "path across ranks: " : "critical path: "}
        {part}, {duration(to_ns - from_ns)}
        {more}
        {!isAcross(longest) && `; ${reason}`}
      </p>
      {isAcross(longest) && (
        <p class="quiet">
          step {longest.step} · since: {longest.since ?? "before it"} · until: {longest.until}
        </p>
      )}
    </>
  );
}
