import { strictEqual as is } from "node:assert/strict";
import { overlap } from "../src/charts/label_placement.ts";
import { squarify } from "../src/charts/treemap_layout.ts";

Deno.test("the rectangles of a treemap have areas in proportion, fill it, and don't overlap", () => {
  let state = 3;
  const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const inside = { left: 10, top: 20, width: 700, height: 300 };
  for (let round = 0; round < 200; round++) {
    const values = Array.from({ length: 1 + Math.floor(random() * 30) }, () => random() ** 4 + 1e-4);
    values.sort((a, b) => b - a);
    const whole = values.reduce((sum, value) => sum + value, 0);
    const places = squarify(values, inside);
    places.forEach(({ left, top, width, height }, i) => {
      is(Math.abs((width * height) / (700 * 300) - values[i]! / whole) < 1e-9, true);
      is(left > 9.999 && top > 19.999 && left + width < 710.001 && top + height < 320.001, true);
      const inner = { left: left + 1e-6, top: top + 1e-6, width: width - 2e-6, height: height - 2e-6 };
      is(places.some((other, at) => at !== i && overlap(inner, other)), false);
    });
  }
});
