/** The ink of each category of slices, the same in the panels as in the picture. */

const INKS: Record<string, string> = {
  Kernel: "var(--kernel)",
  Communication: "var(--communication)",
  Memcpy: "var(--memcpy)",
  Memset: "var(--memset)",
  Step: "var(--step)",
  DataLoader: "var(--dataloader)",
  Annotation: "var(--annotation)",
  Operator: "var(--cpu-exec)",
  Runtime: "var(--runtime)",
  Module: "var(--module)",
  Python: "var(--python)",
  Wait: "var(--wait)",
};

export const inkOf = (category: string): string => INKS[category] ?? "var(--other)";
