import type { ComponentChildren } from "preact";
import type { Progress, Table } from "../api.ts";
import { decimal, percent } from "../format.ts";
import { placeLabels, retry, type Shown } from "../state.ts";

const PREPARING = "Preparing. The first trace ever takes some seconds more: the reader is compiled, once.";

const SHORT = ["listing", "opening", "analysing", "searching"];

function told({ stage, fraction, bytes_per_second, seconds_left }: Progress): string {
  if (fraction === null && !SHORT.includes(stage)) return PREPARING;
  const parts = [stage.charAt(0).toUpperCase() + stage.slice(1)];
  if (fraction !== null) parts.push(percent(fraction).replace(/\.\d/, "") + " %");
  if (bytes_per_second !== null) parts.push(`${decimal(bytes_per_second / 1e6)} MB/s`);
  if (seconds_left !== null) parts.push(`${decimal(seconds_left, seconds_left < 10 ? 1 : 0)} s left`);
  return parts.join(" · ");
}

/** What a loading trace has come to. */
export function ProgressLine({ progress }: { progress: Progress | null }) {
  const text = progress ? told(progress) : "Waiting for the answer";
  return (
    <p role="status">
      <progress max={1} value={progress?.fraction ?? undefined} aria-label="Progress" />
      {text}
    </p>
  );
}

/** The outline of what will come. */
export function Skeleton({ progress = null }: { progress?: Progress | null }) {
  return (
    <div class="skeleton">
      <ProgressLine progress={progress} />
      {[100, 96, 88, 92, 70, 82, 60].map((width) => <i key={width} style={{ width: `${width}%` }} />)}
    </div>
  );
}

/** A card instead of what can't be shown: what, why, what to do. */
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
    <Notice title={isSilent ? "TensorBoard doesn't answer" : "This can't be shown"} failed>
      <p>{message}</p>
      {isSilent
        ? <p class="quiet">The page asks again every few seconds. Is TensorBoard still running?</p>
        : run && <p class="quiet">Run {run}, worker {worker}, span {span}.</p>}
      <button type="button" onClick={retry}>Try again</button>
    </Notice>
  );
}

/** Draws the table of an answer, or whatever stands for it until or unless it comes. */
export function Answered(
  { shown: { answer, earlier }, title, children }: {
    shown: Shown;
    title: string;
    children: (table: Table) => ComponentChildren;
  },
) {
  if (answer?.state === "ready") return <div>{children(answer)}</div>;
  if (answer?.state === "failed") return <Failure {...answer} />;
  if (answer?.state === "missing") {
    return (
      <Notice title={`${title}: not in this trace`}>
        <p>{answer.hint}</p>
      </Notice>
    );
  }
  const progress = answer?.progress ?? null;
  if (!earlier) return <Skeleton progress={progress} />;
  return (
    <div aria-busy="true">
      {answer && (
        <div class="skeleton over">
          <ProgressLine progress={progress} />
        </div>
      )}
      <div class="dimmed" inert>{children(earlier)}</div>
    </div>
  );
}
