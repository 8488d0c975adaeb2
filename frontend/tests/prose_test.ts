import { strictEqual as is } from "node:assert/strict";
import { prose } from "../src/ui/prose.tsx";

const kinds = (text: string) => prose(text).map((part) => typeof part === "string" ? part : `<${part.props.children}>`);

Deno.test("names between backticks are code, a lone backtick is one", () => {
  is(kinds("as in `idle`, not `gaps`").join(""), "as in <idle>, not <gaps>");
  is(kinds("void `anonymous namespace'::f").join(""), "void `anonymous namespace'::f");
});
