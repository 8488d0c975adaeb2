/** The eight parts of a step, with the same name, column and color in every view. */

export interface Category {
  name: string;
  column: string;
  color: string;
}

export const CATEGORIES: Category[] = [
  { name: "Kernel", column: "kernel_ns", color: "var(--kernel)" },
  { name: "Memcpy", column: "memcpy_ns", color: "var(--memcpy)" },
  { name: "Memset", column: "memset_ns", color: "var(--memset)" },
  { name: "Communication", column: "communication_ns", color: "var(--communication)" },
  { name: "Runtime", column: "runtime_ns", color: "var(--runtime)" },
  { name: "DataLoader", column: "dataloader_ns", color: "var(--dataloader)" },
  { name: "CPU Exec", column: "cpu_exec_ns", color: "var(--cpu-exec)" },
  { name: "Other", column: "other_ns", color: "var(--other)" },
];

export const colorOf = (name: string): string => CATEGORIES.find((c) => c.name === name)?.color ?? "var(--other)";
