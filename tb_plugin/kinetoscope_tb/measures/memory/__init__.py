"""Memory: its levels over time (levels), and each allocation with its release (allocations)."""
