/** The words of the vendor that made the devices of the shown trace. */

import { signal } from "@preact/signals";
import { capitalized } from "./steps.ts";

export const TENSOR_CORES = "tensor cores";

/** What the vendor calls the units that multiply matrices. */
export const matrixUnits = signal(TENSOR_CORES);

/** A title or a definition in these words. */
export function inVendorWords(text: string): string {
  const units = matrixUnits.value, noun = deviceNoun();
  if (units === TENSOR_CORES) return text;
  return text.replaceAll(TENSOR_CORES, units).replace(/^TC\b/, capitalized(units))
    .replace(/\bGPU(?=s?\b)/g, (_, at) => at && noun === "Device" ? "device" : noun);
}

/** What people call the devices: a GPU, unless their vendor makes others, or isn't known. */
export function deviceNoun(): string {
  const units = matrixUnits.value;
  return units === "cube units" ? "NPU" : units.startsWith("tensor or") ? "Device" : "GPU";
}
