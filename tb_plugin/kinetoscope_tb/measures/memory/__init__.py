"""Memory: its levels over time (levels), each allocation with its release (allocations), and who holds it (holders)."""
