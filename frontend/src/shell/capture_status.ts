/** Jobs that record, the state of a request to one of them, and both as text. */

import type { Failed, Run } from "../api/types.ts";
import { decimal, plural, quantity } from "../format/numbers.ts";

export interface RankStatus {
  rank: number;
  world_size: number;
  state: "running" | "silent" | "dead" | "ended";
  completed: number | null;
  step_s: number | null;
  is_recording: boolean;
  /** Whether it records where a request names no ranks. */
  records: boolean;
  age_s: number;
  /** Kind, value and Unix time in nanoseconds, the oldest first. */
  news: [kind: string, value: unknown, ns: number][];
}
export interface Job {
  run: string;
  /** Why it takes no request; empty if it does. */
  unavailable_reason: string;
  ranks: RankStatus[];
}
export interface Jobs {
  state: "ready";
  jobs: Job[];
  /** What a request has to carry; null where this page may send none. */
  token: string | null;
  /** Why it may not; empty if it may. */
  refusal: string;
}
export interface RequestAccepted {
  state: "ready";
  request: string;
}
export interface Plan {
  first: number;
  request: { id: string; steps: number; ranks: number[] | null };
}

/** The state of a request; `span` is the recording's name once a rank has saved it. */
export interface RequestOutcome {
  phase: "requested" | "planned" | "recording" | "saved" | "failed";
  text: string;
  span?: string;
}

export const OPTIONS = {
  with_stack: "Call stacks of Python (many times larger)",
  profile_memory: "Memory: each allocation and release",
  record_shapes: "Shapes of the operators' inputs",
  with_flops: "FLOPs of matrix products and convolutions",
};
export type Option = keyof typeof OPTIONS;

export interface RecordingRequest {
  run: string;
  steps: number;
  warmup: number;
  on: Option[];
}

/** Sends a request with the token from the list of jobs, which the server requires. */
export async function requestRecording(
  { run, steps, warmup, on }: RecordingRequest,
  token: string,
): Promise<RequestAccepted | Failed> {
  const options = Object.fromEntries(on.map((option) => [option, true]));
  try {
    const response = await fetch("capture", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Kinetoscope-Token": token },
      body: JSON.stringify({ run, steps, warmup, options }),
    });
    return await response.json();
  } catch (error) {
    const message = `The request got no answer: ${error instanceof Error ? error.message : error}.`;
    return { state: "failed", code: "unreachable", message };
  }
}

/** The progress of a job. */
export function jobText({ ranks, unavailable_reason }: Job): string {
  const size = Math.max(0, ...ranks.map(({ world_size }) => world_size));
  const completed = Math.max(...ranks.map(({ completed }) => completed ?? -1));
  const step = ranks.find(({ step_s }) => step_s !== null)?.step_s;
  const parts = [
    ranks.length < size ? `${ranks.length} of ${plural(size, "rank")} reported` : plural(size, "rank"),
    completed < 0 ? "no step complete yet" : `${plural(completed, "step")} complete`,
    step !== undefined && step !== null && `${quantity(Math.round(step * 1e9), "duration")} a step`,
  ];
  const progress = ranks.length ? `${parts.filter(Boolean).join(", ")}. ` : "";
  return unavailable_reason ? `${progress}It accepts no requests: ${unavailable_reason}.` : progress.trim();
}

const planOf = (job: Job, request: string): Plan | undefined =>
  job.ranks.flatMap(({ news }) => news).filter(([kind]) => kind === "plan").map(([, value]) => value as Plan)
    .find((plan) => plan.request.id === request);

/** The state of a request that was sent after the job's news of `lastNs`, from the job's news and the listing of its run. */
export function outcomeOf(job: Job, request: string, lastNs: number, listed: Run | undefined): RequestOutcome {
  const plan = planOf(job, request);
  const since = (rank: RankStatus, kind: string) => rank.news.filter(([what, , ns]) => what === kind && ns > lastNs);
  if (!plan) {
    const refused = job.ranks.flatMap((rank) => since(rank, "refused"))[0];
    if (refused) return { phase: "failed", text: `The job refused the request: ${refused[1]}` };
    const other = job.ranks.flatMap((rank) => since(rank, "plan"))[0];
    if (other) return { phase: "failed", text: "Another request came first; its recording covers this one too." };
    if (job.unavailable_reason) return { phase: "failed", text: `No job took the request: ${job.unavailable_reason}.` };
    return { phase: "requested", text: "Requested. The job checks once a second." };
  }
  const end = plan.first + plan.request.steps;
  const recording = job.ranks.filter(({ rank, records }) => plan.request.ranks?.includes(rank) ?? records);
  const span = String(end);
  const files = listed?.workers.filter(({ spans }) => spans.some(({ name }) => name === span)).length ?? 0;
  if (files) {
    const missing = recording.length - files;
    const text = missing > 0 ? `Saved by ${files} of ${plural(recording.length, "rank")} so far.` : "Saved.";
    return { phase: "saved", text, span };
  }
  if (recording.length && recording.every((rank) => since(rank, "missed").some(([, id]) => id === request))) {
    return { phase: "failed", text: "The job received the request too late. Request it again." };
  }
  const last = decimal(end - 1), first = decimal(plan.first);
  const steps = plan.request.steps === 1 ? `Step ${first}` : `Steps ${first} to ${last}`;
  const completed = Math.max(0, ...recording.map(({ completed }) => completed ?? 0));
  if (completed >= end) return { phase: "recording", text: `${steps} are recorded and being saved.` };
  if (job.unavailable_reason) return { phase: "failed", text: `The job ended before: ${job.unavailable_reason}.` };
  if (recording.some(({ is_recording }) => is_recording)) {
    return { phase: "recording", text: `${steps}: recording now.` };
  }
  return { phase: "planned", text: `${steps} will be recorded; ${decimal(completed)} are complete.` };
}
