"""Periodic measurements: system counters, clock offsets between machines, and curves of steps."""
