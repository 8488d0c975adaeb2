/** Readable labels of kernels, which the server sends with a trace's state. */

import { signal } from "@preact/signals";

const labels = new Map<string, string>();

/** Counts the answers that brought new labels. */
export const labelsVersion = signal(0);

/** Keeps the labels of an answer: others name the same kernels. */
export function addKernelLabels(added: Record<string, string>) {
  const known = labels.size;
  for (const name in added) labels.set(name, added[name]!);
  if (labels.size > known) labelsVersion.value++;
}

export const hasLabel = (name: unknown): boolean => typeof name === "string" && labels.has(name);

/** The label of a kernel, or any other name as it is; what shows it is drawn again when labels arrive. */
export const readableName = (name: string): string => (labelsVersion.value, labels.get(name) ?? name);
