"""What changes over time beside slices: memory, utilization, queues (counters), and the file's own (user_counters)."""
