"""Causes and faults, planted in real recordings."""
