import { type ComponentChildren, h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Progress, Summary, Table } from "../api/types.ts";
import { type ShownAnswer, tableOf } from "../app/answers.ts";
import { placeLabels, retry } from "../app/router.ts";
import { decimal, percent } from "../format/numbers.ts";
import { capitalized } from "../format/steps.ts";

const PREPARING = "Preparing.";

const SUMMING = "summing up recordings"; // of a run, one after the other
const LONG_S = 10;

const SHORT = ["listing", "opening", "analyzing", "searching", "searching captures"];

function progressText({ stage, fraction, bytes_per_second, seconds_left }: Progress): string {
  if (fraction === null && !SHORT.includes(stage)) return PREPARING;
  const parts = [capitalized(stage)];
  if (fraction !== null) parts.push(percent(fraction).replace(/\.\d/, "") + " %");
  if (bytes_per_second !== null) parts.push(`${decimal(bytes_per_second / 1e6)} MB/s`);
  if (seconds_left !== null) parts.push(`${decimal(seconds_left, seconds_left < 10 ? 1 : 0)} s left`);
  return parts.join(" · ");
}

/** The progress of a loading trace. */
export function ProgressLine({ progress }: { progress: Progress | null }) {
  const text = progress ? progressText(progress) : "Waiting for the server";
  return (
    <p class="progress" role="status">
      <progress max={1} value={progress?.fraction ?? undefined} aria-label="Progress" />
      {text}
      {progress?.stage === SUMMING && (progress.seconds_left ?? 0) > LONG_S && (
        <span class="quiet">
          The result is cached. <code>kinetoscope index LOGDIR --beside</code>{" "}
          computes it beforehand, once for all users.
        </span>
      )}
    </p>
  );
}

/** That what is shown is of one rank alone, and may change. */
export const Comparing = () => (
  <small class="comparing" role="status">The ranks of the run are still being compared</small>
);

/** The outline of what will come. */
export function Skeleton({ progress = null }: { progress?: Progress | null }) {
  return (
    <div class="skeleton">
      <ProgressLine progress={progress} />
      {[100, 96, 88, 92, 70, 82, 60].map((width) => <i key={width} style={{ width: `${width}%` }} />)}
    </div>
  );
}

/** A card that explains what can't be shown, why, and what to do. */
export function Notice(
  { title, failed = false, children }: { title: string; failed?: boolean; children: ComponentChildren },
) {
  return (
    <section class={`card notice ${failed ? "failed" : ""}`} role={failed ? "alert" : undefined}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function Failure({ code, message }: { code: string; message: string }) {
  const { run, worker, span } = placeLabels.value;
  const isSilent = code === "unreachable";
  return (
    <Notice title={isSilent ? "The server doesn't answer" : "This can't be shown"} failed>
      <p>{message}</p>
      {isSilent
        ? <p class="quiet">The page retries every few seconds. Is its process still running?</p>
        : run && <p class="quiet">Run {run}, worker {worker}, span {span}.</p>}
      <button type="button" onClick={retry}>Try again</button>
    </Notice>
  );
}

/** Draws an answer, or its progress, hint or failure. */
export function AnswerView<T extends Table | Summary = Table>(
  { shown, title, children }: {
    shown: ShownAnswer<T>;
    /** Empty where a heading above names it. */
    title: string;
    children: (answer: T) => ComponentChildren;
  },
) {
  const { answer } = shown;
  if (answer?.state === "failed") return <Failure {...answer} />;
  if (answer?.state === "missing") {
    return (
      <Notice title={title ? `${title}: not in this trace` : "Not in this trace"}>
        <p>{answer.hint}</p>
      </Notice>
    );
  }
  const progress = answer?.state === "loading" ? answer.progress : null;
  const table = tableOf(shown);
  if (!table) return <Skeleton progress={progress} />;
  return <Current isBusy={table !== answer} progress={answer && progress}>{children(table)}</Current>;
}

/** The shown content, dimmed while the next loads; the focus is restored afterwards. */
function Current(
  { isBusy, progress, children }: { isBusy: boolean; progress: Progress | null; children: ComponentChildren },
) {
  const box = useRef<HTMLDivElement>(null);
  const focused = useRef<Element | null>(null);
  const active = document.activeElement;
  if (isBusy && active && box.current?.contains(active)) focused.current = active; // before `inert` takes it away
  useLayoutEffect(() => {
    const previous = focused.current;
    if (isBusy || !previous) return;
    focused.current = null;
    if (document.activeElement === document.body && previous instanceof HTMLElement) {
      previous.focus({ preventScroll: true });
    }
  }, [isBusy]);
  return (
    <div aria-busy={isBusy || undefined}>
      {progress && (
        <div class="skeleton over">
          <ProgressLine progress={progress} />
        </div>
      )}
      <div ref={box} class={isBusy ? "dimmed" : ""} inert={isBusy}>{children}</div>
    </div>
  );
}
