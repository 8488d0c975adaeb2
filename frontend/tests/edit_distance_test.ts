import { strictEqual as is } from "node:assert/strict";
import { editDistance } from "../src/format/edit_distance.ts";

Deno.test("each inserted, deleted and replaced letter counts once", () => {
  is(editDistance("kernels", "kernels"), 0);
  is(editDistance("", "gaps"), 4);
  is(editDistance("kernls", "kernels"), 1);
  is(editDistance("oprerators", "operators"), 1);
  is(editDistance("steps", "gaps"), editDistance("gaps", "steps"));
});
