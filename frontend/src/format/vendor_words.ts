/** The words of the vendor that made the devices of the shown trace. */

import { signal } from "@preact/signals";
import { capitalized } from "./steps.ts";

export const TENSOR_CORES = "tensor cores";

/** What the vendor calls the units that multiply matrices. */
export const matrixUnits = signal(TENSOR_CORES);

/** A title or a definition in these words. */
export const inVendorWords = (text: string): string =>
  matrixUnits.value === TENSOR_CORES
    ? text
    : text.replaceAll(TENSOR_CORES, matrixUnits.value).replace(/^TC\b/, capitalized(matrixUnits.value));

/** What people call the devices: a GPU, unless their vendor makes others, or isn't known. */
export function deviceNoun(): string {
  const units = matrixUnits.value;
  return units === "cube units" ? "NPU" : units.startsWith("tensor or") ? "Device" : "GPU";
}
