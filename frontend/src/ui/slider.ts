/** What makes a chart a slider for the keyboard and for screen readers: which of its `count` places is marked. */
export const slider = (label: string, count: number, at: number | null, text: string) => ({
  role: "slider" as const,
  tabIndex: 0,
  "aria-label": label,
  "aria-valuemin": 0,
  "aria-valuemax": Math.max(0, count - 1),
  "aria-valuenow": Math.max(0, at ?? 0),
  "aria-valuetext": text,
});
