/** Lets a running job record its next steps, and shows them when they are there. */

import { Fragment, h } from "preact";
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Failed } from "../api/types.ts";
import { type ApiRequest, useResource } from "../app/resource.ts";
import { listedRun, openTrace, placeIn, retry, trace } from "../app/router.ts";
import {
  type Job,
  type Jobs,
  jobText,
  type Option,
  OPTIONS,
  outcomeOf,
  type RequestAccepted,
  type RequestOutcome,
  requestRecording,
} from "./capture_status.ts";
import { Check, Menu } from "../ui/choice.tsx";
import { Copy } from "../ui/details.tsx";
import { Dialog, Opener } from "../ui/dialog.tsx";

const POLL_MS = 1000;

export const CaptureButton = () => (
  <Opener words="Capture…" class="capture-button" tip="Make a running job record its next steps">
    {(onClose) => <CaptureDialog onClose={onClose} />}
  </Opener>
);

/** Polls the jobs; once a request is sent, only its job. */
function useJobs(run: string): Jobs | Failed | null {
  const last = useRef<Jobs | Failed | null>(null);
  const request = { route: "capture", query: run ? { run } : {}, every_ms: run ? POLL_MS : 3 * POLL_MS };
  const answer = useResource<Jobs>(request as ApiRequest);
  if (answer) last.current = answer;
  return last.current;
}

interface SentRequest {
  run: string;
  request: string;
  /** The time of the job's last news before the request. */
  lastNs: number;
}

function CaptureDialog({ onClose }: { onClose: () => void }) {
  const sent = useSignal<SentRequest | null>(null);
  const answer = useJobs(sent.value?.run ?? "");
  const listed = answer?.state === "ready" ? answer.jobs : [];
  const mine = sent.value && listed.find(({ run }) => run === sent.value!.run);
  return (
    <Dialog class="capture" title="Record a running job" onClose={onClose}>
      {(close) => (
        <>
          {answer?.state === "failed" && <p class="problem" role="alert">{answer.message}</p>}
          {!answer && <p class="quiet">Looking for jobs…</p>}
          {answer?.state === "ready" && !listed.length && <NoJobs />}
          {sent.value
            ? mine && <Progress job={mine} sent={sent.value} onOpen={close} />
            : answer?.state === "ready" && listed.length > 0 && <Form {...answer} sent={sent} />}
          {sent.value && <button type="button" onClick={() => (sent.value = null)}>Send another request</button>}
        </>
      )}
    </Dialog>
  );
}

const LISTENING = `from kinetoscope import Tracer, on_request

with Tracer("LOGDIR", schedule=on_request) as tracer:
    for batch in tracer.steps(loader):
        train(batch)`;

/** What a training needs to be listed here. */
const NoJobs = () => (
  <>
    <p class="quiet">
      No running job has a Tracer that writes to this logdir. With these lines in its training loop, a job is listed
      here and records on request:
    </p>
    <pre>{LISTENING}</pre>
    <Copy text={LISTENING} label="Copy" />
  </>
);

function Form({ jobs, token, refusal, sent }: Jobs & { sent: Signal<SentRequest | null> }) {
  const chosen = useSignal(jobs.find(({ run }) => run === trace.value.run && run)?.run ?? jobs[0]!.run);
  const steps = useSignal(3), warmup = useSignal(1);
  const on = useSignal<Option[]>([]);
  const problem = useSignal(""), isSending = useSignal(false);
  const job = jobs.find(({ run }) => run === chosen.value);
  const submit = async (event: Event) => {
    event.preventDefault();
    isSending.value = true;
    const lastNs = Math.max(0, ...(job?.ranks.flatMap(({ news }) => news.map(([, , ns]) => ns)) ?? []));
    const answer: RequestAccepted | Failed = await requestRecording(
      { run: chosen.value, steps: steps.value, warmup: warmup.value, on: on.value },
      token ?? "",
    );
    isSending.value = false;
    if (answer.state === "failed") problem.value = answer.message;
    else sent.value = { run: chosen.value, request: answer.request, lastNs };
  };
  return (
    <form onSubmit={submit}>
      <Menu
        title="Job"
        class="choice"
        value={chosen.value}
        options={jobs.map(({ run, unavailable_reason }) => [run, unavailable_reason ? `${run} (not listening)` : run])}
        onPick={(run) => (chosen.value = run)}
      />
      {job && <p class={job.unavailable_reason ? "problem" : "quiet"}>{jobText(job)}</p>}
      <div class="numbers">
        <Count title="Steps" value={steps} least={1} />
        <Count title="Warm-up steps before" value={warmup} least={0} />
      </div>
      <fieldset>
        <legend>In addition to the job's own settings</legend>
        {(Object.keys(OPTIONS) as Option[]).map((option) => (
          <Check
            key={option}
            isOn={on.value.includes(option)}
            set={(isOn) => on.value = isOn ? [...on.value, option] : on.value.filter((one) => one !== option)}
          >
            {OPTIONS[option]}
          </Check>
        ))}
      </fieldset>
      {(refusal || problem.value) && <p class="problem" role="alert">{refusal || problem.value}</p>}
      <button type="submit" disabled={!token || !job || !!job.unavailable_reason || isSending.value}>Record</button>
    </form>
  );
}

const Count = ({ title, value, least }: { title: string; value: Signal<number>; least: number }) => (
  <label>
    {title}
    <input
      type="number"
      min={least}
      max={1000}
      required
      value={value.value}
      onInput={({ currentTarget }) => (value.value = currentTarget.valueAsNumber)}
    />
  </label>
);

/** The state of the request, and a button that opens its recording. */
function Progress({ job, sent, onOpen }: { job: Job; sent: SentRequest; onOpen: () => void }) {
  const listed = listedRun(job.run);
  const outcome: RequestOutcome = outcomeOf(job, sent.request, sent.lastNs, listed);
  useEffect(() => {
    if (outcome.phase === "recording") retry(); // refresh the listing more often than every five seconds
  }, [job]);
  const open = () => {
    const worker = listed?.workers.find(({ spans }) => spans.some(({ name }) => name === outcome.span));
    openTrace(placeIn(job.run, worker?.name, outcome.span));
    onOpen();
  };
  return (
    <>
      <p role="status" class={outcome.phase === "failed" ? "problem" : ""}>{outcome.text}</p>
      {outcome.phase !== "failed" && <p class="quiet">{job.run}: {jobText(job)}</p>}
      {outcome.span && <button type="button" class="open" onClick={open}>Open span {outcome.span}</button>}
    </>
  );
}
