import { strictEqual as is } from "node:assert/strict";
import { median, stepsInWords, usualStep } from "../src/charts/usual_step.ts";

const steps = (total_ns: number[], more: Record<string, unknown[]> = {}) =>
  ({
    step: total_ns.map((_, i) => String(i)),
    total_ns,
    is_complete: total_ns.map(() => true),
    ...more,
  }) as Parameters<typeof usualStep>[0];

Deno.test("a median has as many values above it as below", () => {
  is([median([3, 1, 2]), median([4, 1, 3, 2])].join(), "2,2.5");
});

Deno.test("the longest step has the part that makes it long", () => {
  const total = [100e6, 101e6, 140e6, 100e6], loading = [10e6, 11e6, 45e6, 10e6], kernels = [90e6, 90e6, 95e6, 90e6];
  is(
    stepsInWords(steps(total, { dataloader_ns: loading, kernel_ns: kernels })),
    "The usual step takes 101 ms (median of 4). Step 2 takes 39.5 ms longer, most of it DataLoader (+34.5 ms).",
  );
  is(
    stepsInWords(steps(total, { dataloader_ns: [0, 0, 15e6, 0], kernel_ns: [85e6, 85e6, 100e6, 85e6] })),
    "The usual step takes 101 ms (median of 4). Step 2 takes 39.5 ms longer.",
  );
});

Deno.test("a part that takes more time than the whole step isn't most of it", () => {
  const total = [100e6, 101e6, 103e6, 100e6], waits = [10e6, 10e6, 18e6, 10e6], code = [90e6, 91e6, 85e6, 90e6];
  is(
    stepsInWords(steps(total, { communication_ns: waits, cpu_exec_ns: code })),
    "The usual step takes 101 ms (median of 4). Step 2 takes 2.5 ms longer: Communication 8 ms more, CPU Exec 5 ms less.",
  );
  is(
    stepsInWords(steps(total, { communication_ns: waits })),
    "The usual step takes 101 ms (median of 4). Step 2 takes 2.5 ms longer: Communication 8 ms more.",
  );
});

Deno.test("steps that are alike are called so", () => {
  is(
    stepsInWords(steps([100e6, 101e6, 100e6])),
    "The usual step takes 100 ms (median of 3). None takes noticeably longer.",
  );
});

Deno.test("two steps, incomplete ones, and steps of several phases have no usual one", () => {
  is(usualStep(steps([1, 2])), null);
  is(usualStep(steps([1, 2, 3], { is_complete: [true, true, false] })), null);
  is(usualStep(steps([1, 2, 3], { phase: ["prefill", "decode", "decode"] })), null);
  is(stepsInWords(steps([1, 2])), "");
});
