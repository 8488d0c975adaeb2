/**
 * The server's answers to the requests that follow from the page's state.
 *
 * A resource sends a request whenever it changes, and aborts the one before: an old answer never replaces a newer one.
 * It polls while the server is "loading". A failed request is repeated when the user retries, or when an outage ends.
 */

import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { poll } from "../api/client.ts";
import type { Failed, Query } from "../api/types.ts";

export interface ApiRequest {
  route: string;
  query: Query;
  /** Asks again when it changes, such as the stamp of a file. */
  version?: string;
  /** Asks again so long after each answer. */
  every_ms?: number;
}

type Answer = { state: string };

interface Options<T> {
  /** How many requests run at one time. */
  atOnce?: number;
  /** How long a request must stay as it is before it is sent. */
  delay_ms?: number;
  /** Whether an answer that is ready stays while the next one loads. */
  keepsReady?: boolean;
  onAnswer?: (answer: T | Failed, request: ApiRequest) => void;
}

export interface Resources<T> {
  /** The latest answer to each request, by its name. */
  readonly answers: ReadonlySignal<Readonly<Record<string, T | Failed>>>;
  /** Starts requesting; returns a function that stops and drops the answers. */
  start: () => () => void;
}

interface Run {
  key: string;
  controller: AbortController;
  state: "running" | "done" | "failed";
}

/** Counts the retries of failed requests. */
export const attempt = signal(0);
export const retryFailed = () => attempt.value++;

export const keyOf = ({ route, query, version }: ApiRequest): string => JSON.stringify([route, query, version]);

/**
 * Answers to a changing set of requests. A name keeps its last answer until the next one arrives, and loses it when it
 * is no longer requested; null keeps the answer and requests nothing.
 */
export function resources<T extends Answer>(
  requests: () => Record<string, ApiRequest | null>,
  { atOnce = Infinity, delay_ms = 0, keepsReady = false, onAnswer }: Options<T> = {},
): Resources<T> {
  const answers = signal<Record<string, T | Failed>>({});
  let current: Record<string, ApiRequest | null> = {};
  const runs = new Map<string, Run>();

  function send(name: string, request: ApiRequest) {
    const run: Run = { key: keyOf(request), controller: new AbortController(), state: "running" };
    const { signal } = run.controller;
    runs.set(name, run);
    const receive = (answer: T | Failed) => {
      if (answer.state !== "loading") run.state = answer.state === "failed" ? "failed" : "done";
      const isRetained = keepsReady && answer.state === "loading" && answers.peek()[name]?.state === "ready";
      if (!isRetained) answers.value = { ...answers.peek(), [name]: answer };
      onAnswer?.(answer, request);
    };
    void poll<T>(request, receive, signal, delay_ms).then(() => signal.aborted || requestNext());
  }

  function requestNext() {
    let free = atOnce - [...runs.values()].filter(({ state }) => state === "running").length;
    for (const [name, request] of Object.entries(current)) {
      if (request && !runs.has(name) && free-- > 0) send(name, request);
    }
  }

  function update() {
    for (const [name, { key, controller }] of runs) {
      const request = current[name];
      if (request && keyOf(request) === key) continue;
      controller.abort();
      runs.delete(name);
    }
    const entries = Object.entries(answers.peek()), remaining = entries.filter(([name]) => name in current);
    if (remaining.length < entries.length) answers.value = Object.fromEntries(remaining);
    requestNext();
  }

  function start() {
    const ends = [
      effect(() => {
        current = requests();
        untracked(update);
      }),
      effect(() => {
        void attempt.value;
        for (const [name, { state, controller }] of runs) {
          if (state !== "failed") continue;
          controller.abort();
          runs.delete(name);
        }
        untracked(requestNext);
      }),
    ];
    return () => {
      for (const end of ends) end();
      current = {};
      update();
    };
  }

  return { answers, start };
}

/** Answers that count only as long as their requests stay as they are. */
export function exactResources<T extends Answer>(
  requests: () => Record<string, ApiRequest>,
  options: Options<T> = {},
): Resources<T> {
  const byKey = resources<T>(
    () => Object.fromEntries(Object.values(requests()).map((request) => [keyOf(request), request])),
    options,
  );
  const answers = computed(() => {
    const entries = Object.entries(requests()).map(([name, request]) => [name, byKey.answers.value[keyOf(request)]]);
    return Object.fromEntries(entries.filter(([, answer]) => answer));
  });
  return { answers, start: byKey.start };
}

export interface Resource<T> {
  /** The answer to the current request; null before it arrives, and while there is no request. */
  readonly answer: ReadonlySignal<T | Failed | null>;
  start: () => () => void;
}

/** The answer to one request. */
export function resource<T extends Answer>(request: () => ApiRequest | null, options: Options<T> = {}): Resource<T> {
  const { answers, start } = exactResources<T>((): Record<string, ApiRequest> => {
    const only = request();
    return only ? { only } : {};
  }, options);
  return { answer: computed(() => answers.value.only ?? null), start };
}

const MAX_CACHED = 40;

/** Complete answers, kept after their components unmount. */
const cachedAnswers = new Map<string, Answer>();

/** Counts the answers that were cached. */
const cacheVersion = signal(0);

/** The answer to a request if the page has it already. */
export function cachedAnswer(request: ApiRequest): Answer | null {
  void cacheVersion.value;
  const key = keyOf(request), answer = cachedAnswers.get(key) ?? null;
  if (answer) { // What is looked at stays: the badge doesn't forget after many other answers.
    cachedAnswers.delete(key);
    cachedAnswers.set(key, answer);
  }
  return answer;
}

function cacheAnswer(answer: Answer, request: ApiRequest) {
  if (request.every_ms || (answer.state !== "ready" && answer.state !== "missing")) return;
  cachedAnswers.set(keyOf(request), answer);
  cacheVersion.value++;
  if (cachedAnswers.size > MAX_CACHED) cachedAnswers.delete(cachedAnswers.keys().next().value!);
}

/** The requests of all components, with the number of users of each. */
const shared = signal<Readonly<Record<string, { request: ApiRequest; users: number }>>>({});
const sharedAnswers = resources<Answer>(
  () => Object.fromEntries(Object.entries(shared.value).map(([key, { request }]) => [key, request])),
  { onAnswer: cacheAnswer },
);
sharedAnswers.start();

/** Whether the requests of all components are answered, and there are some. */
export const isAnswered = computed((): boolean => {
  const keys = Object.keys(shared.value), answers = sharedAnswers.answers.value;
  return keys.length > 0 && keys.every((key) => answers[key] && answers[key]!.state !== "loading");
});

function share(request: ApiRequest, by: 1 | -1) {
  const { [keyOf(request)]: entry, ...others } = shared.peek();
  const users = (entry?.users ?? 0) + by;
  shared.value = users ? { ...others, [keyOf(request)]: { request, users } } : others;
}

/** The answers to a component's requests, each null before its first. Components share requests. */
export function useResources<T extends Answer>(requests: (ApiRequest | null)[]): (T | Failed | null)[] {
  const keys = requests.map((request) => request && keyOf(request)).join("\n");
  const { missing, answers } = useMemo(() => {
    const missing = requests.filter((request) =>
      request !== null && !cachedAnswers.has(keyOf(request))
    ) as ApiRequest[];
    const answers = requests.map((request): ReadonlySignal<Answer | null> => {
      const key = request ? keyOf(request) : "", cached = cachedAnswers.get(key);
      return cached ? signal(cached) : computed(() => sharedAnswers.answers.value[key] ?? null);
    });
    return { missing, answers };
  }, [keys]);
  useEffect(() => {
    for (const request of missing) share(request, 1);
    return () => missing.forEach((request) => share(request, -1));
  }, [missing]);
  return answers.map(({ value }) => value as T | Failed | null);
}

export const useResource = <T extends Answer>(request: ApiRequest | null): T | Failed | null =>
  useResources<T>([request])[0]!;

/** The answer to a request, once it is more than "loading", for what happens once: a key, a click. */
export async function load<T extends Answer>(request: ApiRequest): Promise<T | Failed> {
  let last: T | Failed | null = null;
  await poll<T>(request, (answer) => (last = answer));
  return last!;
}
