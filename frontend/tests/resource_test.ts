import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { signal } from "@preact/signals";

// What the page finds in a browser and asks for, with answers that the tests give.
Object.assign(globalThis, { document: { getElementById: () => null } });
const sent: { url: string; answer: (value: unknown) => void }[] = [];
globalThis.fetch = (url, init) =>
  new Promise((resolve, reject) => {
    init?.signal?.addEventListener("abort", () => reject(new Error("aborted")));
    sent.push({ url: String(url), answer: (value) => resolve(new Response(JSON.stringify(value))) });
  });
const { load, resource, resources, retryFailed } = await import("../src/app/resource.ts");

type Answer = { state: string; value?: number };

const request = (x: string) => ({ route: "view", query: { x } });
const ready = (value: number): Answer => ({ state: "ready", value });
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

async function reply(url: string, value: Answer) {
  const at = sent.findIndex((one) => one.url === url);
  sent.splice(at, 1)[0]!.answer(value);
  await settled();
}

Deno.test("an old answer never replaces a newer one", async () => {
  const x = signal("1");
  const { answer, start } = resource<Answer>(() => request(x.value));
  const end = start();
  is(answer.value, null);
  x.value = "2";
  await reply("view?x=2", ready(2));
  await reply("view?x=1", ready(1));
  same(answer.value, ready(2));
  end();
  is(answer.value, null);
});

Deno.test("a name keeps its answer until the next one comes, and while it is null", async () => {
  const x = signal<string | null>("1");
  const { answers, start } = resources<Answer>(() => ({ own: x.value === null ? null : request(x.value) }));
  const end = start();
  await reply("view?x=1", ready(1));
  x.value = "2";
  same(answers.value, { own: ready(1) });
  await reply("view?x=2", ready(2));
  x.value = null;
  same(answers.value, { own: ready(2) });
  end();
  same(answers.value, {});
});

Deno.test("loading is polled, and may leave a ready answer in place", async () => {
  const version = signal("1");
  const { answers, start } = resources<Answer>(() => ({ own: { ...request("1"), version: version.value } }), {
    keepsReady: true,
  });
  const end = start();
  await reply("view?x=1", { state: "loading" });
  same(answers.value, { own: { state: "loading" } });
  await new Promise((resolve) => setTimeout(resolve, 150));
  await reply("view?x=1", ready(1));
  version.value = "2";
  await reply("view?x=1", { state: "loading" });
  same(answers.value, { own: ready(1) });
  end();
  await new Promise((resolve) => setTimeout(resolve, 150)); // the pause before the next question
  is(sent.length, 0);
});

Deno.test("another attempt asks for what failed, and for nothing else", async () => {
  const { answers, start } = resources<Answer>(() => ({ a: request("a"), b: request("b") }));
  const end = start();
  await reply("view?x=a", ready(1));
  await reply("view?x=b", { state: "failed" });
  retryFailed();
  same(sent.map(({ url }) => url), ["view?x=b"]);
  await reply("view?x=b", ready(2));
  same(answers.value, { a: ready(1), b: ready(2) });
  end();
});

Deno.test("requests wait for their turn where few may run at one time", async () => {
  const { start } = resources<Answer>(() => ({ a: request("a"), b: request("b") }), { atOnce: 1 });
  const end = start();
  same(sent.map(({ url }) => url), ["view?x=a"]);
  await reply("view?x=a", ready(1));
  same(sent.map(({ url }) => url), ["view?x=b"]);
  await reply("view?x=b", ready(2));
  end();
});

Deno.test("a single request gives its complete answer", async () => {
  const answer = load<Answer>(request("once"));
  await settled();
  await reply("view?x=once", ready(3));
  same(await answer, ready(3));
});
