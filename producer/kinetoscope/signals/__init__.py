"""Threats to a recording from outside: signals that end the process, and steps that hang."""
