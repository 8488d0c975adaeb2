/** The words of the vendor that made the devices of the shown trace. */

import { signal } from "@preact/signals";
import { capitalized } from "./steps.ts";

/** What the vendor calls the units that multiply matrices. */
export const matrixUnits = signal("tensor cores");

/** A title or a definition in these words. */
export const inVendorWords = (text: string): string =>
  matrixUnits.value === "tensor cores"
    ? text
    : text.replaceAll("tensor cores", matrixUnits.value).replace(/^TC\b/, capitalized(matrixUnits.value));
