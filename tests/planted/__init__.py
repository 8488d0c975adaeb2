"""Recordings whose cause of slowness is known by construction, and a judge of the advice about them."""
