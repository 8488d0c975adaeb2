import { strictEqual as is } from "node:assert/strict";
import { stepOf } from "../src/timeline/steps.ts";

const step = (name: string, start_ns: number, end_ns: number) => ({ name, start_ns, end_ns, is_complete: true });

Deno.test("a time is in the step that holds it; its end is the next one's", () => {
  const steps = [step("7", 0, 10), step("8", 10, 20)];
  is(stepOf(steps, 9)?.name, "7");
  is(stepOf(steps, 10)?.name, "8");
  is(stepOf(steps, 20), null);
});
