"""Nsight Systems' SQLite export (`nsys export --type sqlite`) → the same sorted events as from JSON.

schema   its tables, and which of their columns are read
scan     rows of a table → numbers and texts, in batches
events   batches → events sorted into frames
metrics  samples of the devices' counters
ingest   a file → sorted events
event    one row as JSON, for the details of a row

Sources: NVIDIA's SQLite Export Schema Reference (docs.nvidia.com/nsight-systems), cupti_activity.h for numbers.
"""
