import { strictEqual as is } from "node:assert/strict";
import {
  addKernelLabels,
  functionName,
  idInWords,
  isReadableOtherwise,
  labelsVersion,
  readableName,
  resetKernelLabels,
} from "../src/format/readable_names.ts";
import { Labels } from "../src/timeline/model/labels.ts";

Deno.test("a timeline that is shown again brings its labels again", async () => {
  const page = {
    state: "ready" as const,
    texts: ["execute_context_1"],
    labels: { execute_context_1: "Decode" },
    categories: [0],
  };
  const labels = new Labels(1, () => Promise.resolve(page), () => {});
  await labels.requestAll();
  is(readableName("execute_context_1"), "Decode");
  resetKernelLabels();
  is(readableName("execute_context_1"), "execute_context_1");
  await labels.requestAll();
  is(readableName("execute_context_1"), "Decode");
});

Deno.test("the labels of a recording are forgotten with it", () => {
  addKernelLabels({ "aten::mm": "mm", "void k<int>()": "k int32" });
  resetKernelLabels({ "void k<int>()": "k" });
  is(readableName("void k<int>()"), "k");
  is(readableName("aten::mm"), "aten::mm");
  const before = labelsVersion.value;
  addKernelLabels({ "void k<int>()": "k" });
  is(labelsVersion.value, before);
});

Deno.test("a function without a file is called as its callers write it", () => {
  is(functionName("<built-in function zoom_shift>"), "zoom_shift");
  is(functionName("<built-in method astype of numpy.ndarray object at 0x7f12>"), "ndarray.astype");
  is(functionName("<built-in method randn of type object>"), "randn");
  is(functionName("<built-in method _get_tracing_state of PyCapsule object>"), "_get_tracing_state");
  is(functionName("<built-in method  of PyCapsule object at 0x7f12>"), "C++ function");
  is(functionName("<built-in method f of pybind11_builtins.pybind11_detail_function_record_v1 object>"), "f");
  is(functionName("<built-in method weird name>"), "<built-in method weird name>");
});

Deno.test("a function with a file is called by its name, with its file and line", () => {
  is(functionName("job/train.py(3): step"), "step (job/train.py:3)");
  is(functionName("a/b (c).py(12): <lambda>"), "<lambda> (a/b (c).py:12)");
  is(isReadableOtherwise("train.py(3): step"), true);
  is(functionName("volta_sgemm_128x64_nn(1)"), "volta_sgemm_128x64_nn(1)");
  is(isReadableOtherwise("execute_context_0(0)_generation_4(4)"), false);
});

Deno.test("the range of a step is called like the step", () => {
  is(readableName("ProfilerStep#22"), "Step 22");
  is(isReadableOtherwise("ProfilerStep#22"), true);
  is(readableName("ProfilerStep#22 of mine"), "ProfilerStep#22 of mine");
});

Deno.test("the id of a rule is words", () => {
  is(idInWords("device_rows_without_launch"), "GPU events without launch");
});
