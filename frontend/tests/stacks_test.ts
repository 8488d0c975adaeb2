import { deepStrictEqual as same, strictEqual as is } from "node:assert/strict";
import { cutFolders, cutPlace, frameOf, framesOf, shortFrame, stackLine } from "../src/format/stacks.ts";

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

Deno.test("a stack on one line is its innermost frame that isn't PyTorch's", () => {
  const lines = (...frames: string[]) => stackLine(frames.join("\n"));
  is(
    lines("<built-in mm>", "torch/nn/linear.py(3): forward", "a/net.py(7): forward", "main.py(1): main"),
    "forward (net.py:7) · 4 frames",
  );
  is(
    lines("/usr/lib/site-packages/torch/nn/a.py(3): f", "/usr/lib/site-packages/b/c.py(4): g"),
    "g (c.py:4) · 2 frames",
  );
  is(lines("torch/a.py(3): f"), "f (a.py:3)");
  is(lines("<built-in mm>"), "<built-in mm>");
  is(lines("at::empty(long)", "Register_0.cpp(0): at::div(long)", "/job/net.py(7): f"), "f (net.py:7) · 3 frames");
  is(lines("at::(anonymous namespace)::resize<int>(at::Tensor const&, long)"), "resize");
});

Deno.test("a short frame has no folders", () => {
  is(shortFrame("a/net.py(7): forward"), "forward (net.py:7)");
  is(shortFrame("<built-in function len>"), "<built-in function len>");
});

Deno.test("a place in the code is cut before its file, and its function stays", () => {
  is(cutFolders("zoom (scipy/ndimage/_interpolation.py:739)"), "zoom (…/_interpolation.py:739)");
  is(cutFolders("<module> (/usr/local/bin/vllm:8)"), "<module> (…/vllm:8)");
  is(cutFolders("scipy/ndimage/_interpolation.py(739): zoom"), "…/_interpolation.py(739): zoom");
  is(cutFolders("C:\\job\\train.py:12"), "…/train.py:12");
  is(cutFolders("step (train.py:12)"), "step (train.py:12)");
  is(cutFolders("reads/s of disk"), "reads/s of disk");
});

Deno.test("a place that is cut has its line, then as much of the function and of the end of the file as there is room for", () => {
  const cut = (text: string, most: number) => cutPlace(text, ({ length }) => length <= most);
  is(cut("step (train.py:12)", 18), "step (train.py:12)");
  is(cut("normalize_images (image_transforms.py:390)", 38), "normalize_i… (image_transforms.py:390)");
  is(cut("normalize_images (image_transforms.py:390)", 28), "normali… (…ransforms.py:390)");
  is(cut("normalize_images (image_transforms.py:390)", 10), "");
  is(cut("/data/image_transforms.py:390", 18), "…transforms.py:390");
  is(cut("aten::convolution_backward", 12), "");
});
