import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { finish, workInSlices } from "../src/table/time_slices.ts";

/** Work that pauses after each of so many milliseconds. */
function* work<T>(milliseconds: number, result: T): Generator<void, T> {
  for (let i = 0; i < milliseconds; i++) {
    for (const until = performance.now() + 1; performance.now() < until;);
    yield;
  }
  return result;
}

const until = (isTrue: () => boolean) =>
  new Promise<void>((resolve) => {
    const look = () => isTrue() ? resolve() : setTimeout(look);
    look();
  });

Deno.test("work without a pause has the same result as in slices", async () => {
  const taken: string[] = [];
  workInSlices(work(3, "result"), (result) => taken.push(result));
  same(taken, []);
  await until(() => taken.length > 0);
  same(taken, [finish(work(3, "result"))]);
});

Deno.test("others have their turn between slices, and before the result is taken", async () => {
  const events: string[] = [];
  function* recorded() {
    for (const name of ["first", "second"]) {
      events.push(name);
      yield* work(2, null);
    }
    events.push("end");
  }
  const others = setInterval(() => events.push("others"));
  workInSlices(recorded(), () => events.push("taken"), 1);
  await until(() => events.includes("taken"));
  clearInterval(others);
  const at = (name: string) => events.indexOf(name), between = (a: string, b: string) => events.slice(at(a), at(b));
  is(between("first", "second").includes("others"), true);
  is(between("end", "taken").includes("others"), true);
});

Deno.test("only the newest of several requests is taken, in whichever of their slices the others are dropped", async () => {
  for (const turns of [0, 1, 2, 3]) {
    const taken: number[] = [];
    let drop = () => {};
    for (const request of [1, 2, 3]) {
      drop();
      drop = workInSlices(work(20, request), (result) => taken.push(result), 1);
      for (let turn = 0; turn < turns; turn++) await new Promise((next) => setTimeout(next));
    }
    await until(() => taken.length > 0);
    await new Promise((next) => setTimeout(next, 20));
    same(taken, [3]);
  }
});

Deno.test("work that is dropped after its last slice isn't taken either", async () => {
  const taken: string[] = [];
  let isDone = false;
  function* quick() {
    yield;
    isDone = true;
    return "dropped";
  }
  const drop = workInSlices(quick(), (result) => taken.push(result));
  await until(() => isDone);
  drop();
  await new Promise((next) => setTimeout(next, 20));
  same(taken, []);
});
