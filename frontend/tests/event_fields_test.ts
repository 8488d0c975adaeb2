import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { eventFields, pretty, truncateText, valueText } from "../src/format/event_fields.ts";

Deno.test("an event's name and category come first, then the other fields, then its arguments", () => {
  same(eventFields({ ph: "X", cat: "cpu_op", name: "aten::add", ts: "0.001", dur: -5, args: { a: [1, 2], b: "x" } }), {
    name: "aten::add",
    category: "cpu_op",
    fields: [["ph", "X"], ["ts", "0.001"], ["dur", "-5"]],
    args: [["a", "[1, 2]"], ["b", "x"]],
  });
});

Deno.test("missing fields are null, and malformed ones are shown as they are", () => {
  same(eventFields({}), { name: null, category: null, fields: [], args: [] });
  same(eventFields({ name: 7, cat: null, args: [1] }), {
    name: "7",
    category: "null",
    fields: [["args", "[1]"]],
    args: [],
  });
});

Deno.test("texts stand without quotes, unless nothing would stand there", () => {
  is(valueText("a\nb"), "a\nb");
  is(valueText(""), '""');
  is(valueText(null), "null");
  is(valueText(false), "false");
});

Deno.test("nested values take one line if they fit, else one line for each item", () => {
  is(pretty({ a: [[32, 8], [8]] }), '{"a": [[32, 8], [8]]}');
  is(pretty([]), "[]");
  const long = "x".repeat(70);
  is(pretty({ long, dims: [1, 2] }), `{\n  "long": "${long}",\n  "dims": [1, 2]\n}`);
  is(pretty([{ long, n: 1 }]), `[\n  {\n    "long": "${long}",\n    "n": 1\n  }\n]`);
});

Deno.test("a pretty value parses to the same", () => {
  const value = { a: Array.from({ length: 60 }, (_, i) => ({ i, s: '"\\\n' })), b: null };
  same(JSON.parse(pretty(value)), value);
});

Deno.test("a very long text is cut, and reports how much is omitted", () => {
  same(truncateText("short"), { drawn: "short", omitted: 0 });
  const { drawn, omitted } = truncateText("y".repeat(50_000));
  is(drawn.length + omitted, 50_000);
  is(omitted, 30_000);
});
