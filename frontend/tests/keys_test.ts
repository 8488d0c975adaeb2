import { deepStrictEqual as same } from "node:assert/strict";
import { letters } from "../src/ui/keys.ts";

const view = (id: string, title: string, shortcut = "") => ({ id, title, shortcut });

Deno.test("a view has its shortcut, or the first free letter of its title", () => {
  const views = [
    view("steps", "Steps"),
    view("operators", "Operators", "p"),
    view("python", "Python"),
    view("x", "42"),
  ];
  same([...letters(views)], [["steps", "s"], ["operators", "p"], ["python", "y"], ["x", ""]]);
});
