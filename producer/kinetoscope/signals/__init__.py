"""Threats to a recording from outside: signals that end the process, steps that hang, and where threads stand."""
