"""Clocks of ranks: estimated from the ends of collectives (estimate), and the offset that all views use (offsets)."""
