/** The eight parts of a step: the same name, column and ink in every view. */

export interface Category {
  name: string;
  column: string;
  ink: string;
}

export const CATEGORIES: Category[] = [
  { name: "Kernel", column: "kernel_ns", ink: "var(--kernel)" },
  { name: "Memcpy", column: "memcpy_ns", ink: "var(--memcpy)" },
  { name: "Memset", column: "memset_ns", ink: "var(--memset)" },
  { name: "Communication", column: "communication_ns", ink: "var(--communication)" },
  { name: "Runtime", column: "runtime_ns", ink: "var(--runtime)" },
  { name: "DataLoader", column: "dataloader_ns", ink: "var(--dataloader)" },
  { name: "CPU Exec", column: "cpu_exec_ns", ink: "var(--cpu-exec)" },
  { name: "Other", column: "other_ns", ink: "var(--other)" },
];

export const colorOf = (name: string): string => CATEGORIES.find((c) => c.name === name)?.ink ?? "var(--other)";
