"""What is wrong with a trace, or with a run of many.

`diagnose.diagnose` returns what reading a trace repaired or lost, and what the rules find; each is a count with its
consequence:

device        device rows and the calls that launched them; clocks of GPUs that fell while kernels ran
physics       what can't have happened, and which numbers that undermines
clocks        the machine's clock, and the window that was recorded
steps         steps that were cut off, missing or idle
links         from backward to forward operators, and from waits to the events that they wait for
stack_overlaps  annotations that begin or end in the middle of Python calls
distributed   the worker's rank, and the metadata of collectives
recording     the profiler's own code, threads and names that it lost, and options that were off
other_files   files of other programs, and memory snapshots with the trace next to them
captures      what says which operators graphs replay

run           diagnostics of a run of many ranks
verification  whether the traces of a run are complete (`kinetoscope check`)

The rules of torch 2.13's own validator (torch/profiler/_trace_validator.py) are among them. What the recorder itself
reports of missing ranks is `discovery/manifest_notes.py`, since the listing needs it.
"""
