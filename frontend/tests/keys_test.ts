import { deepStrictEqual as same } from "node:assert/strict";
import { letters } from "../src/ui/keys.ts";

Deno.test("an entry has the first free letter of its title", () => {
  same([...letters(["Overview", "Operators", "Python", "42"])], [
    ["Overview", "o"],
    ["Operators", "p"],
    ["Python", "y"],
    ["42", ""],
  ]);
});
