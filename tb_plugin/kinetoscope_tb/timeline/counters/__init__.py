"""Counter tracks: memory, utilization and queues (counters), and those that the program recorded (user_counters)."""
