import { deepStrictEqual as same } from "node:assert/strict";
import { stepsOf } from "../src/charts/waterfall.tsx";

Deno.test("each bar begins where the one before it ends, and the last one is their sum", () => {
  const steps = stepsOf([{ name: "idle", delta: -9, tip: "" }, { name: "only in new", delta: 4, tip: "" }], "Step");
  same(steps.map(({ name, begin, end }) => [name, begin, end]), [
    ["idle", 0, -9],
    ["only in new", -9, -5],
    ["Step", 0, -5],
  ]);
});
