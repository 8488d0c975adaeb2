"""Loads and caches: the listing, traces and results, each computed once and cached while it is current.

A question never waits for a file: if an answer takes longer than `PATIENCE_S`, `NotReady` is raised, and the work
continues in the background.

engine             answers questions about files
trace_cache        which traces are in memory; what was computed from one is with it (`Trace.results`)
files              reads a file, or opens it from the cache on disk; events has single events of it
file_processes     which files hold several processes
captures           where the recordings are that say what graphs launch, searched after the trace is shown
capture_search     reads those recordings, and joins the trace with them
summary_loader     many files as summaries, for views of whole runs; run_cache has those of recent runs
future_cache       keyed futures with a least-recently-used limit; all these caches use it
executors          thread and process pools that read many files
sidecar_summaries  summaries stored next to their recordings
read_queue         which file is read next
workers            threads
answers            not ready, partial, missing, or a table; meanwhile computes what advice needs late
notes              which part of the recording a view is of; doubts which of its numbers are doubtful
cache              the cache on disk
"""
