"""What is measured at intervals: system counters, clock offsets between machines, and curves of steps."""
