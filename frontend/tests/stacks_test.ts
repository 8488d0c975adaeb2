import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { frameOf, framesOf, stackLine } from "../src/stacks.ts";

Deno.test("a frame names a function, a file and a line, or it is a name alone", () => {
  same(frameOf("a/b (c).py(12): <lambda>"), {
    text: "a/b (c).py(12): <lambda>",
    called: "<lambda>",
    file: "a/b (c).py",
    line: 12,
  });
  same(frameOf("<built-in function len>"), {
    text: "<built-in function len>",
    called: "<built-in function len>",
    file: "",
    line: 0,
  });
});

Deno.test("frames stand one a line, the innermost first", () => {
  same(framesOf("f.py(2): f\nmain.py(1): <module>").map(({ called }) => called), ["f", "<module>"]);
});

Deno.test("a stack on one line is the innermost frame of the user's own code", () => {
  is(
    stackLine("<built-in mm>\ntorch/nn/linear.py(3): forward\nnet.py(7): forward\nmain.py(1): main"),
    "net.py(7): forward · 4 frames",
  );
  is(stackLine("/usr/lib/python3/dist-packages/a/b.py(3): f\nmy/net.py(7): g"), "my/net.py(7): g · 2 frames");
  is(stackLine("torch/a.py(3): f"), "torch/a.py(3): f");
});
