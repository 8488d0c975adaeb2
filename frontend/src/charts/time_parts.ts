/** What the page calls each part of the time of a device or a rank, and its color. */
const PARTS: Record<string, [string, string]> = {
  busy_ns: ["Busy", "var(--kernel)"],
  late_data_loading_ns: ["Waiting for data", "var(--dataloader)"],
  late_synchronizing_ns: ["Host synchronizing", "color-mix(in srgb, var(--runtime) 50%, var(--surface))"],
  late_runtime_ns: ["Host in runtime calls", "var(--runtime)"],
  late_operator_ns: ["Host in operators", "var(--cpu-exec)"],
  late_annotation_ns: ["Host in annotations", "color-mix(in srgb, var(--cpu-exec) 55%, var(--surface))"],
  late_python_ns: ["Host in Python", "var(--curve-1)"],
  late_unrecorded_ns: ["Host, nothing recorded", "var(--other)"],
  launch_latency_ns: ["Launch latency", "color-mix(in srgb, var(--runtime) 25%, var(--surface))"],
  dependency_ns: ["Waiting for another stream", "var(--communication)"],
  blocked_copy_ns: ["Blocked in a copy or sync", "var(--memcpy)"],
  graph_launch_ns: ["Graph launch", "var(--memset)"],
  not_shown_ns: ["Not shown by the trace", "color-mix(in srgb, var(--warning) 34%, var(--surface))"],
  unexplained_ns: ["Unexplained", "var(--warning)"],
  computation_ns: ["Computation", "var(--kernel)"],
  exposed_communication_ns: ["Exposed communication", "var(--communication)"],
  exposed_transfer_ns: ["Exposed transfer", "var(--communication)"],
  wait_ns: ["Waiting for other ranks", "color-mix(in srgb, var(--communication) 40%, var(--surface))"],
  exposed_copies_ns: ["Exposed copies", "var(--memcpy)"],
  idle_ns: ["Idle", "color-mix(in srgb, var(--other) 60%, var(--surface))"],
};

/** The name and the color of a column. */
export function timePart(column: string): { name: string; color: string } {
  const [name, color] = PARTS[column] ?? [column, "var(--other)"];
  return { name, color };
}
