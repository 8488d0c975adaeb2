/** The ink of each category of slices in the panels, the same as in the picture. */

const INKS: Record<string, string> = {
  Kernel: "var(--kernel)",
  Communication: "var(--communication)",
  Memcpy: "var(--memcpy)",
  Memset: "var(--memset)",
  DataLoader: "var(--dataloader)",
  Operator: "var(--cpu-exec)",
  Runtime: "var(--runtime)",
};

export const inkOf = (category: string): string => INKS[category] ?? "var(--other)";
