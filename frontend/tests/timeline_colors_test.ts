import { strictEqual as is } from "node:assert/strict";
import { type Color, luminance, needsDarkText } from "../src/timeline/draw/colors.ts";

Deno.test("letters of slices have a contrast of 4.5 to any color", () => {
  const levels = Array.from({ length: 18 }, (_, i) => i * 15);
  for (const red of levels) {
    for (const green of levels) {
      for (const blue of levels) {
        const color: Color = [red, green, blue], light = luminance(color) + 0.05;
        is((needsDarkText(color) ? light / 0.05 : 1.05 / light) >= 4.5, true, `${color}`);
      }
    }
  }
});
