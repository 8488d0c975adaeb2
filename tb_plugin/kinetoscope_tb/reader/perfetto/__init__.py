"""Perfetto's protobuf (`.pftrace`) → the same sorted events as from JSON.

ingest   blocks of bytes → sorted events
wire     the scanner: packets → rows, tokens and numbers
state    what packets refer to: interned texts, tracks, sequences, clocks
message  single messages, field by field
slices   begin and end events → durations
arrows   links between launches and device work
event    one packet as JSON, for the details of a row
"""
