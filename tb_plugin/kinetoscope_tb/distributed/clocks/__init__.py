"""Clocks of ranks: estimates from the ends of collectives (estimate), and the offsets that all views use (offsets)."""
