"""Dumps of torch's flight recorder: the last collectives of each rank of a job that stands still.

values       numbers and texts of a dump
hang_report  where a rank is, which `Tracer` adds
schema       the values of a dump → `Dump`, whatever version of torch wrote it
files        a folder → its dumps, and why the other files aren't used
"""
