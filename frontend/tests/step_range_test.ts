import { parseRange, shiftRange, zoomRange } from "../src/charts/step_range.ts";

const same = (got: unknown, expected: unknown) => {
  if (JSON.stringify(got) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(got)} is not expected`);
};

Deno.test("an address without a sound range means all", () => {
  same(parseRange("12-40", 100), { from: 12, to: 40 });
  same(parseRange("12-400", 100), { from: 12, to: 100 });
  for (const text of [undefined, "", "40-12", "12", "a-b", "200-300"]) {
    same(parseRange(text, 100), { from: 0, to: 100 });
  }
});

Deno.test("a range moves as far as there is something", () => {
  same(shiftRange({ from: 10, to: 20 }, 5, 100), { from: 15, to: 25 });
  same(shiftRange({ from: 10, to: 20 }, -50, 100), { from: 0, to: 10 });
  same(shiftRange({ from: 10, to: 20 }, 500, 100), { from: 90, to: 100 });
});

Deno.test("zooming keeps what is looked at in its place", () => {
  same(zoomRange({ from: 0, to: 100 }, 0.5, 50, 100), { from: 25, to: 75 });
  same(zoomRange({ from: 0, to: 100 }, 0.5, 0, 100), { from: 0, to: 50 });
  same(zoomRange({ from: 50, to: 100 }, 2, 99, 100), { from: 0, to: 100 });
  same(zoomRange({ from: 3, to: 4 }, 0.5, 3, 4), { from: 2, to: 4 });
  same(zoomRange({ from: 0, to: 1 }, 0.5, 0, 1), { from: 0, to: 1 });
});
