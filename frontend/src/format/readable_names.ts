/** Readable names: those of kernels, which the server sends with a trace's state, of steps, and of Python's own functions. */

import { signal } from "@preact/signals";
import { frameOf, frameText } from "./stacks.ts";

const labels = new Map<string, string>();

/** Counts the answers that brought new labels. */
export const labelsVersion = signal(0);

/** Keeps the labels of an answer: others about the recording name the same kernels. */
export function addKernelLabels(added: Record<string, string>) {
  const known = labels.size;
  for (const name in added) labels.set(name, added[name]!);
  if (labels.size > known) labelsVersion.value = labelsVersion.peek() + 1;
}

/** Forgets the labels of another recording: they are distinct within one. */
export function resetKernelLabels(known: Record<string, string> = {}) {
  labels.clear();
  addKernelLabels(known);
}

// torch's name of a function without a file; `names/python_frames.py` has the same rule.
const BUILT_IN = /^<built-in (?:function|method) (\w*)(?: of (?:[\w.]*\.)?(\w+) object(?: at 0x\w+)?)?>$/;
const NO_CLASS = /^(type|module|PyCapsule|pybind11_\w+)$/; // the latter two hold functions that pybind11 binds

/** What a frame is called: `step (train.py:12)`, or as callers write it, such as `ndarray.astype` for a method of C. */
export function functionName(text: string): string {
  const frame = frameOf(text);
  if (frame.file) return frameText(frame);
  const [, name, owner = "type"] = BUILT_IN.exec(text) ?? [];
  if (name === undefined) return text;
  return NO_CLASS.test(owner) ? name || "C++ function" : `${owner}.${name}`;
}

const STEP = /^ProfilerStep#(?=\d+$)/; // torch's name of a step's range

export const isReadableOtherwise = (name: unknown): boolean =>
  typeof name === "string" && (labels.has(name) || STEP.test(name) || functionName(name) !== name);

/** The label of a kernel, or of another name; what shows it is drawn again when labels arrive. */
export const readableName = (name: string): string => (
  labelsVersion.value, labels.get(name) ?? functionName(name).replace(STEP, "Step ")
);

/** An id in words: "missing_ranks" is "missing ranks". */
export const idInWords = (id: string): string =>
  id.replace("device_rows", "GPU events").replace("cannot_tell", "can’t tell").replaceAll("_", " ");
